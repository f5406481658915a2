#include "report/gate/evidence.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/base/path.h"

namespace memtrace::report::gate {

Evidence EvidenceOf(const std::vector<std::string>& paths) {
  Evidence evidence;
  // `check traces/ traces/a.mtr`: what is named twice is looked at, or missing, once.
  std::set<std::string> files, missing;
  const auto miss = [&](std::string why) {
    if (missing.insert(why).second) evidence.missing.push_back({"", std::move(why)});
  };
  for (const std::string& path : paths) {
    const auto set = FindTraces({path});
    if (!set.ok()) {
      miss(std::string(set.status().message()));
      continue;
    }
    for (const TraceSet::File& file : set->files) {
      std::error_code ignored;
      const auto name = std::filesystem::absolute(file.path, ignored).lexically_normal();
      if (!files.insert(name.string()).second) continue;
      evidence.set.files.push_back(file);
      evidence.set.total_bytes += file.bytes;
    }
    for (const std::string& spool : set->spools) {
      miss(absl::StrCat("a run has processes that had not ended, or has left traces, in ", spool,
                        ": memtrace run --finish, when they have ended"));
    }
  }
  return evidence;
}

Evidence EvidenceOfRun(const std::string& directory, bool kept, const RunOutcome& outcome) {
  Evidence evidence;
  std::string none;
  if (auto set = FindTraces({directory}); !set.ok()) {
    none = kept ? std::string(set.status().message()) : "there is no trace";
  } else {
    evidence.set = *std::move(set);
    std::set<std::string> of_run;
    for (const std::string& path : outcome.traces) of_run.insert(std::string(FileNameOf(path)));
    std::erase_if(evidence.set.files, [&](const TraceSet::File& file) {
      return !of_run.contains(std::string(FileNameOf(file.path)));
    });
    if (evidence.set.files.empty())
      none = absl::StrCat(directory, " has no trace but those of other runs");
  }
  if (!none.empty() && outcome.missing.empty()) {
    evidence.missing.push_back(
        {"", absl::StrCat(none, ": the program did not start, or cannot be traced (statically "
                          "linked, set-user-ID, started without LD_PRELOAD, or run by another "
                          "memtrace)")});
  }
  evidence.missing.insert(evidence.missing.end(), outcome.missing.begin(), outcome.missing.end());
  return evidence;
}

}  // namespace memtrace::report::gate
