// Ranges of sizes and of times, as users write them after --size, --lifetime and --age. Pure
// functions, any thread.

#ifndef MEMTRACE_REPORT_ANALYSIS_BLOCK_RANGES_H_
#define MEMTRACE_REPORT_ANALYSIS_BLOCK_RANGES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/findings/usage.h"

namespace memtrace::report {

// "1K..64K", "..100", "1M..", or one size: of --size. Errors name the option.
absl::StatusOr<ValueRange> ParseSizeRange(absl::string_view option, absl::string_view text);
// "1ms..2s", "..10us", "1h..": of --lifetime and --age.
absl::StatusOr<ValueRange> ParseTimeRange(absl::string_view option, absl::string_view text);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_BLOCK_RANGES_H_
