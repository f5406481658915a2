// The key "pressure" of the JSON report, and what is told of a SIGKILL.

#include "report/render/json_pressure.h"

#include <string>

namespace memtrace::report::render {
void AddKillJson(const ProcessInfo& process, Json* json) {
  const bool known = process.kill.told() &&
                     process.kill.verdict != format::KillVerdict::kNotKnown;
  (*json)["oom_killed"] =
      known ? Json(process.kill.verdict == format::KillVerdict::kOomKiller) : Json();
  (*json)["oom_evidence"] = process.kill.told() ? Json(process.kill.why) : Json();
  const bool limited = process.kill.told() && process.kill.limit_bytes != 0;
  (*json)["memory_limit_bytes"] = limited ? Json(process.kill.limit_bytes) : Json();
}

namespace {

Json PressurePointJson(const PressureLane& lane, const PressureLane::Point& point) {
  Json json = {{"time_s", Seconds(point.time_ns)}};
  for (size_t i = 0; i < point.values.size() && i < lane.columns.size(); ++i) {
    if (point.values[i] != PressureLane::kNotKnown) json[lane.columns[i]] = point.values[i];
  }
  return json;
}

}  // namespace

void WritePressure(const PressureLane& lane, words::Sink& out) {
  if (lane.empty()) {
    out.Write(",\n  \"pressure\": null");
    return;
  }
  Json titles = Json::array();
  for (const std::string& column : lane.columns) titles.push_back(ColumnTitle(column));
  out.Write(",\n  \"pressure\": { \"samples\": " + std::to_string(lane.samples) +
            ", \"columns\": " + Dump(Json(lane.columns)) +
            ", \"titles\": " + Dump(titles) +
            ", \"notes\": " + Dump(Json(lane.notes)) + ", \"points\": ");
  WriteArray(lane.points, static_cast<size_t>(-1),
             [&](const PressureLane::Point& point) { return PressurePointJson(lane, point); }, out);
  out.Write(" }");
}

}  // namespace memtrace::report::render
