#include "report/trend/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/whole_io.h"
#include "report/base/unique_fd.h"
#include "report/diff/told_apart.h"
#include "report/render/json_parts.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

using render::Json;

constexpr absl::string_view kSchema = "memtrace-night/1";
constexpr size_t kLongestLine = size_t{256} << 20;
constexpr size_t kLongestName = 500;

absl::Status Failed(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno)));
}

std::string Shortened(absl::string_view text) {
  return std::string(words::CutUtf8(text, kLongestName));
}

// "function  file:line"
std::string ShortenedFrame(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits("  ", 1));
  return absl::StrCat(Shortened(parts.first), parts.second.empty() ? "" : "  ",
                      Shortened(parts.second));
}

// Amounts that are 0 are left out.
Json AmountsJson(const Amounts& amounts) {
  Json json = Json::object();
  for (size_t i = 0; i < kMeasures; ++i) {
    if (amounts.of[i] != 0) json[std::string(MeasureName(static_cast<Measure>(i)))] = amounts.of[i];
  }
  return json;
}

Amounts ReadAmounts(const Json& json) {
  Amounts amounts;
  for (size_t i = 0; i < kMeasures; ++i) {
    const auto found = json.find(std::string(MeasureName(static_cast<Measure>(i))));
    if (found != json.end() && found->is_number_unsigned()) amounts.of[i] = found->get<uint64_t>();
  }
  return amounts;
}

}  // namespace

std::string HistoryFile(const std::string& directory) {
  const bool closed = !directory.empty() && directory.back() == '/';
  return absl::StrCat(directory, closed ? "" : "/", "history.jsonl");
}

std::string NightLine(const Night& night, size_t most_sites) {
  const RunSummary& run = night.run;
  // The least that a site without live blocks must have allocated.
  std::vector<uint64_t> idle;
  for (const auto& [key, site] : run.sites) {
    if (site.amounts[Measure::kLive] == 0) idle.push_back(site.amounts[Measure::kAllocated]);
  }
  std::sort(idle.begin(), idle.end(), std::greater<>());
  const uint64_t least = idle.size() > most_sites && most_sites > 0 ? idle[most_sites - 1] + 1 : 0;
  std::vector<SiteInTable> kept;
  std::vector<const SiteKey*> keys;
  for (const auto& [key, site] : run.sites) {
    if (site.amounts[Measure::kLive] == 0 && site.amounts[Measure::kAllocated] < least) continue;
    kept.push_back({key.first, &site});
    keys.push_back(&key);
  }
  const std::vector<ToldApart> apart = TellApart(kept);
  const uint64_t left_out = run.sites.size() - kept.size();
  Json sites = Json::array();
  for (size_t i = 0; i < kept.size(); ++i) {
    const SiteKey& key = *keys[i];
    const RunSite& site = *kept[i].site;
    Json one = {{"fingerprint", key.second}};
    if (run.executables.size() > 1) one["executable"] = key.first;
    one["allocator"] = site.allocator;
    one["caller"] = Shortened(site.caller);
    if (!site.file.empty()) one["file"] = Shortened(site.file);
    if (site.line != 0) one["line"] = site.line;
    const size_t callers =
        std::min(site.callers().size(), std::max<size_t>(apart[i].callers, 1));
    if (callers > 0) {
      Json& names = one["callers"] = Json::array();
      for (const std::string& caller : site.callers().first(callers)) {
        names.push_back(ShortenedFrame(caller));
      }
    }
    one["amounts"] = AmountsJson(site.amounts);
    sites.push_back(std::move(one));
  }
  const Json json = {
      {"schema", std::string(kSchema)},
      {"label", night.label},
      {"added_ns", night.added_realtime_ns},
      {"start_time",
       run.start_realtime_ns == 0 ? Json() : Json(words::DateTimeIso(run.start_realtime_ns))},
      {"start_ns", run.start_realtime_ns},
      {"duration_ns", run.duration_ns},
      {"command", run.command},
      {"end", run.end},
      {"processes", run.processes},
      {"executables", run.executables},
      {"estimated", run.sampled},
      {"leaks_known", run.scanned},
      {"notes", run.notes},
      {"totals", AmountsJson(run.totals)},
      {"sites_left_out", left_out},
      {"sites", std::move(sites)}};
  return render::Dump(json);
}

bool ParseNight(const std::string& line, Night* night) {
  if (line.size() > kLongestLine) return false;
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  try {
    if (json.value("schema", "") != std::string(kSchema)) return false;
    *night = Night();
    RunSummary& run = night->run;
    night->label = json.value("label", "");
    night->added_realtime_ns = json.value("added_ns", int64_t{0});
    run.start_realtime_ns = json.at("start_ns").get<int64_t>();
    run.duration_ns = json.at("duration_ns").get<uint64_t>();
    run.command = json.value("command", "");
    run.end = json.value("end", "");
    run.processes = json.value("processes", uint64_t{1});
    run.executables = json.at("executables").get<std::vector<std::string>>();
    run.sampled = json.value("estimated", false);
    run.scanned = json.value("leaks_known", false);
    run.notes = json.value("notes", std::vector<std::string>());
    run.totals = ReadAmounts(json.at("totals"));
    for (const Json& one : json.at("sites")) {
      const std::string executable =
          one.value("executable", run.executables.empty() ? "" : run.executables.front());
      RunSite& site = run.sites[{executable, one.at("fingerprint").get<std::string>()}];
      site.allocator = one.value("allocator", "");
      site.caller = one.value("caller", "");
      site.file = one.value("file", "");
      site.line = one.value("line", uint32_t{0});
      site.stack = one.value("callers", std::vector<std::string>());
      site.amounts = ReadAmounts(one.at("amounts"));
    }
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

absl::Status AppendNight(const std::string& directory, const Night& night) {
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return Failed("make the directory", directory);
  }
  const std::string path = HistoryFile(directory);
  const UniqueFd file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file.ok()) return Failed("open", path);
  while (flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Failed("lock", path);
  }
  struct stat before;
  if (fstat(file.get(), &before) != 0) return Failed("read", path);
  if (!S_ISREG(before.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  std::string text = absl::StrCat(NightLine(night, kSitesKept), "\n");
  if (before.st_size > 0) {
    char last = '\n';
    if (pread(file.get(), &last, 1, before.st_size - 1) != 1) return Failed("read", path);
    if (last != '\n') text = absl::StrCat("\n", text);  // what was cut there ends here
  }
  if (!base::WriteAll(file.get(), text) || fsync(file.get()) != 0) {
    const absl::Status failed = Failed("append to", path);
    // Nothing rather than a part. Where this fails too, the next to append closes the line.
    if (ftruncate(file.get(), before.st_size) != 0) return failed;
    return failed;
  }
  return absl::OkStatus();
}

absl::StatusOr<History> ReadHistory(const std::string& directory) {
  const std::string path = HistoryFile(directory);
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat(
        path, ": ", strerror(error),
        error == ENOENT
            ? absl::StrCat("; memtrace trend --add TRACE ", directory, " begins a history")
            : ""));
  }
  History history;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    Night night;
    if (!ParseNight(line, &night)) {
      ++history.bad_lines;
      continue;
    }
    history.nights.push_back(std::move(night));
  }
  if (in.bad()) return Failed("read", path);
  std::stable_sort(history.nights.begin(), history.nights.end(),
                   [](const Night& a, const Night& b) {
                     return a.run.start_realtime_ns < b.run.start_realtime_ns;
                   });
  return history;
}

}  // namespace memtrace::report
