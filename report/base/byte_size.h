// Sizes and counts as a user writes them, the same for every option of every command.
//
//   4096   512K   1.5M   2GiB   64 kb     K, KB and KiB are one unit of 1024, in any case; up to T
//
// Without a unit it is a whole number. Errors say what would be right; who calls names the option.
// What is too large is kOutOfRange, all else kInvalidArgument.
// The library's variables take the same (ParseBytes of preload/config.h).

#ifndef MEMTRACE_REPORT_BASE_BYTE_SIZE_H_
#define MEMTRACE_REPORT_BASE_BYTE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace memtrace::report {

absl::StatusOr<uint64_t> ParseByteSize(absl::string_view text);

// A number of things: "1000", "5k", "1.5M", in steps of 1000.
absl::StatusOr<uint64_t> ParseCount(absl::string_view text);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_BYTE_SIZE_H_
