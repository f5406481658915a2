// History: what `memtrace trend` keeps of many nights: a file of lines, DIR/history.jsonl.
//
// A night is one line of JSON, "memtrace-night/1" (docs/nightly.md has the keys), and a line is
// never changed. It is appended under a lock by one write that ends in a newline, so two jobs
// may add to one history; when the disk is full the file gets its old length back. A line that
// a crash cut is closed by who appends next, and passed over by who reads, which is noted.

#ifndef MEMTRACE_REPORT_TREND_HISTORY_H_
#define MEMTRACE_REPORT_TREND_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/diff/run_summary.h"

namespace memtrace::report {

struct Night {
  std::string label;  // of the user: a commit, a build number
  int64_t added_realtime_ns = 0;
  RunSummary run;     // the stacks of its sites are those of their callers() that are kept
};

struct History {
  std::vector<Night> nights;  // in the order of their starts
  uint64_t bad_lines = 0;     // cut, or not a night's
};

std::string HistoryFile(const std::string& directory);

// The night on one line, without the newline. Sites that allocated and hold nothing are kept for
// the `most_sites` that allocated most; those that hold something are all kept. Of each the callers
// until one tells it from those that read the same, and the first in any case: another night may
// have such a site.
std::string NightLine(const Night& night, size_t most_sites);
inline constexpr size_t kSitesKept = 2000;
// False: this is no night.
bool ParseNight(const std::string& line, Night* night);

// Makes the directory when it is not there.
absl::Status AppendNight(const std::string& directory, const Night& night);
absl::StatusOr<History> ReadHistory(const std::string& directory);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREND_HISTORY_H_
