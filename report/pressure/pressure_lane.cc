#include "report/pressure/pressure_lane.h"

#include <algorithm>

#include "format/varint.h"
#include "report/pressure/pressure_sample.h"

namespace memtrace::report {
namespace {

constexpr size_t kLongestName = 64;

uint64_t ValueAt(const PressureLane::Point& point, size_t column) {
  return column < point.values.size() ? point.values[column] : PressureLane::kNotKnown;
}

}  // namespace

std::string ColumnTitle(const std::string& column) {
  for (size_t i = 0; i < pressure::kColumns; ++i) {
    if (pressure::kColumnNames[i] == column) return std::string(pressure::kColumnTitles[i]);
  }
  std::string words = column;
  std::replace_if(words.begin(), words.end(), [](char c) { return c == '.' || c == '_'; }, ' ');
  return words;
}

std::optional<size_t> PressureLane::Find(std::string_view column) const {
  const auto at = std::find(columns.begin(), columns.end(), column);
  if (at == columns.end()) return std::nullopt;
  return static_cast<size_t>(at - columns.begin());
}

void PressureLane::Narrow(uint64_t from_ns, uint64_t to_ns) {
  if (points.empty()) return;
  const uint64_t each = std::max<uint64_t>(samples / points.size(), 1);  // that a point stands for
  const size_t erased = std::erase_if(
      points, [&](const Point& point) { return point.time_ns < from_ns || point.time_ns > to_ns; });
  samples -= std::min(samples, erased * each);
  samples = points.empty() ? 0 : std::max<uint64_t>(samples, points.size());
}

std::vector<std::pair<uint64_t, uint64_t>> PressureLane::Series(std::string_view column) const {
  std::vector<std::pair<uint64_t, uint64_t>> series;
  const auto index = Find(column);
  if (!index.has_value()) return series;
  for (const Point& point : points) {
    const uint64_t value = ValueAt(point, *index);
    if (value != kNotKnown) series.emplace_back(point.time_ns, value);
  }
  return series;
}

std::vector<std::pair<uint64_t, uint64_t>> PressureLane::ResidentBytes() const {
  std::vector<std::pair<uint64_t, uint64_t>> series;
  const auto anon = Find("rss_anon_bytes"), file = Find("rss_file_bytes"),
             shmem = Find("rss_shmem_bytes");
  if (!anon.has_value() || !file.has_value() || !shmem.has_value()) return series;
  for (const Point& point : points) {
    uint64_t sum = 0;
    bool known = true;
    for (const size_t column : {*anon, *file, *shmem}) {
      const uint64_t value = ValueAt(point, column);
      known = known && value != kNotKnown;
      sum += value;
    }
    if (known) series.emplace_back(point.time_ns, sum);
  }
  return series;
}

ColumnSummary Summarize(const std::vector<std::pair<uint64_t, uint64_t>>& series) {
  ColumnSummary summary;
  for (const auto& [time, value] : series) {
    if (!summary.known) summary.first = value;
    if (!summary.known || value > summary.most) {
      summary.most = value;
      summary.most_at_ns = time;
    }
    summary.known = true;
    summary.last = value;
  }
  return summary;
}

void PressureCollector::ReadSamples(format::RecordBody& body) {
  const uint64_t columns = body.Number();
  if (columns > PressureLane::kMostColumns) return;
  std::vector<size_t> places;  // in the lane, of the record's columns
  for (uint64_t i = 0; i < columns; ++i) {
    const std::string_view name = body.Bytes().substr(0, kLongestName);
    auto place = lane_.Find(name);
    if (!place.has_value() && lane_.columns.size() < PressureLane::kMostColumns) {
      place = lane_.columns.size();
      lane_.columns.emplace_back(name);
    }
    places.push_back(place.value_or(PressureLane::kMostColumns));
  }
  uint64_t time = 0;
  std::vector<uint64_t> last(columns, 0);
  while (!body.at_end()) {
    time += body.Number();
    PressureLane::Point point;
    point.time_ns = time;
    point.values.assign(lane_.columns.size(), PressureLane::kNotKnown);
    for (uint64_t i = 0; i < columns; ++i) {
      if (body.at_end()) return;  // cut short
      const uint64_t code = body.Number();
      if (code == 0) continue;
      last[i] += format::UnZigZag(code - 1);
      if (places[i] < point.values.size()) point.values[places[i]] = last[i];
    }
    Add(std::move(point));
  }
}

void PressureCollector::Add(PressureLane::Point point) {
  if (lane_.samples++ % stride_ != 0) return;
  if (lane_.points.size() == PressureLane::kMostPoints) {
    for (size_t i = 0; i < PressureLane::kMostPoints / 2; ++i) {
      lane_.points[i] = std::move(lane_.points[2 * i]);
    }
    lane_.points.resize(PressureLane::kMostPoints / 2);
    stride_ *= 2;
  }
  lane_.points.push_back(std::move(point));
}

void PressureCollector::AddNote(std::string note) {
  if (lane_.notes.size() < PressureLane::kMostNotes) lane_.notes.push_back(std::move(note));
}

PressureLane PressureCollector::Finish(uint64_t start_ns) const {
  PressureLane lane = lane_;
  lane.Narrow(start_ns, UINT64_MAX);
  for (PressureLane::Point& point : lane.points) point.time_ns -= start_ns;
  std::stable_sort(lane.points.begin(), lane.points.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  return lane;
}

}  // namespace memtrace::report
