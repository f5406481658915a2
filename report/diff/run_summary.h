// RunSummary: what a run allocated, by fingerprint: what two runs, or the runs of many nights,
// are compared by.
//
// A run is a trace, or the traces of a process tree; the processes of one executable are
// added up. Sites with one fingerprint are one. Single-threaded.

#ifndef MEMTRACE_REPORT_DIFF_RUN_SUMMARY_H_
#define MEMTRACE_REPORT_DIFF_RUN_SUMMARY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/analysis/analyzer.h"
#include "report/findings/sampling.h"
#include "report/render/view.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::report {

// What is compared. The kinds of leaks are known where the memory was scanned at the end.
enum class Measure {
  kLive, kLiveBlocks, kPeak, kAllocated, kAllocations, kTemporary, kDefinite, kIndirect,
  kPossible, kReachable,
};
inline constexpr size_t kMeasures = 10;
absl::string_view MeasureName(Measure measure);  // "live", "definite", ...
absl::StatusOr<Measure> ParseMeasure(absl::string_view option, absl::string_view name);
bool IsBytes(Measure measure);  // else a count
bool IsLeakKind(Measure measure);

struct Amounts {
  uint64_t of[kMeasures] = {};
  uint64_t& operator[](Measure measure) { return of[static_cast<size_t>(measure)]; }
  uint64_t operator[](Measure measure) const { return of[static_cast<size_t>(measure)]; }
  void Add(const Amounts& other);
};

// A site, by (executable, fingerprint). Executables by their file names: builds lie in many
// directories. CompareRuns() matches without it where each run has one executable only.
using SiteKey = std::pair<std::string, std::string>;

struct RunSite {
  std::string allocator;           // "malloc"
  std::string caller, file;        // as the report's tables name them; may be empty
  uint32_t line = 0;
  std::vector<std::string> stack;  // "function  file:line", innermost first, what a person reads
  size_t callers_begin = 0;        // in `stack`, behind `caller`
  std::span<const std::string> callers() const {  // the one that called `caller` first
    return std::span(stack).subspan(std::min(callers_begin, stack.size()));
  }
  Amounts amounts;
  Amounts estimated;  // the part of `amounts` that comes from samples; the rest is exact
  // How much the site that gave the stack has: of SummaryOptions::measure, then of allocated bytes.
  // The stack is that of the site with most.
  std::pair<uint64_t, uint64_t> weight;
  SampledSum bytes_sample, live_sample;  // what the intervals of `estimated` need
};

struct RunSummary {
  std::string name;          // file or directory, as the user wrote it
  std::string command;       // of the first process, as one types it; "\u2026" where it is cut
  std::string end;           // "exit 0", "SIGSEGV", "at work", "cut", of the first process
  int64_t start_realtime_ns = 0;
  uint64_t duration_ns = 0;  // from the first start to the last end
  std::optional<uint64_t> range_ns;  // of that, the part that all amounts are of, if not all
  uint64_t counted_ns() const { return range_ns.value_or(duration_ns); }
  bool without_exit_work = false;  // some of it was memtrace's at an exit, and is not in that
  uint64_t processes = 1;
  bool sampled = false;      // amounts are estimates, of one of its traces at least
  // By the executables of which a trace is a sample: on the average from one sample to the next,
  // the largest of its traces.
  std::map<std::string, uint64_t> sample_bytes;
  bool scanned = false;      // the kinds of leaks are known
  bool all_recorded = true;  // AllRecorded() of each of its traces, and each could be read
  Amounts totals;  // of all sites, also those that do not match; peak: of the largest process
  std::vector<std::string> executables;  // file names
  std::vector<std::string> notes;        // what is missing in it
  std::vector<std::string> incomplete;   // those of the notes that tell of lost events
  // Modules that are gone or another build now, with frames of sites in them.
  std::vector<std::string> nameless;
  std::vector<std::string> skipped;      // traces that could not be read, and why
  render::FrameFilter frames;            // which are in `sites`
  std::vector<std::string> only;         // what all amounts are of, in words; empty: of all blocks
  std::map<SiteKey, RunSite> sites;
};

struct SummaryOptions {
  symbolizer::Options symbolizer;
  AnalyzeOptions analyze;  // of one trace: the range, the thread, the blocks
  render::FrameFilter frames;
  // What the stack of a site is chosen by, where several have its fingerprint.
  Measure measure = Measure::kLive;
  std::function<void(absl::string_view what, double share)> progress;  // may be empty
};

// Sums up one trace or several: files, directories. An error when nothing could be read.
absl::StatusOr<RunSummary> SummarizeRun(const std::vector<std::string>& paths,
                                        const SummaryOptions& options);

// In what unit amounts are compared.
enum class Per { kRun, kSecond, kAllocation };
absl::StatusOr<Per> ParsePer(absl::string_view name);
absl::string_view PerName(Per per);
// The number that amounts are divided by: 1, the seconds, or the allocations.
// nullopt: the run has none.
std::optional<double> Divisor(Per per, uint64_t duration_ns, const Amounts& totals);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_DIFF_RUN_SUMMARY_H_
