// Instants of a run, as users write them after --from and --to.

#ifndef MEMTRACE_REPORT_ANALYSIS_INSTANT_H_
#define MEMTRACE_REPORT_ANALYSIS_INSTANT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace memtrace::report {

class TraceReader;

// "1.5" and "1.5s" seconds, "250ms", "10us", "5ns", "2min" or "2m", "1h", or a share of
// the duration, "90%", or an instant that the program named: see phases.h.
struct Instant {
  uint64_t ns = 0;
  std::optional<double> share;  // 0 to 1; then `ns` says nothing
  std::string name;             // the same: phases.h tells which it is

  uint64_t Ns(const TraceReader& reader) const;
  // The same time where it is the end of a range: 100 % of the run also takes in events
  // that have no time yet.
  uint64_t EndNs(const TraceReader& reader) const;
  bool operator==(const Instant&) const = default;
};

// Errors name the option.
absl::StatusOr<Instant> ParseInstant(absl::string_view option, absl::string_view text);

// The values of --from and --to; empty is not given, and then the begin or the end.
absl::StatusOr<std::pair<Instant, Instant>> ParseInstants(absl::string_view from,
                                                          absl::string_view to);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_INSTANT_H_
