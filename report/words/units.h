// Numbers as a person reads them. Bytes are binary (1 KiB = 1024 bytes) with
// three significant digits; counts have separators; times have the unit that
// fits. Pure functions, any thread.

#ifndef MEMTRACE_REPORT_WORDS_UNITS_H_
#define MEMTRACE_REPORT_WORDS_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::words {

std::string Count(uint64_t n);                            // "1,234,567"
std::string ShortCount(uint64_t n);                       // "999", "1.23M" (decimal)
std::string Plural(uint64_t n, absl::string_view noun);   // "1 block", "2 blocks"
std::string ExactBytes(uint64_t bytes);                   // "1 byte", "1,234 bytes"
std::string HumanBytes(uint64_t bytes);                   // "356 B", "45.2 MiB"
std::string ShortBytes(uint64_t bytes);                   // "356", "45.2M" (binary)
std::string ExactOrHumanBytes(uint64_t bytes);            // "356 bytes", "45.2 MiB"
std::string Duration(uint64_t ns);                        // "250 us", "1.87 s", "2 min 5 s"
std::string Percent(double part, double whole);           // "71.9 %", "<0.1 %", "-" of nothing
std::string DateTime(int64_t realtime_ns);                // "2025-11-21 08:10:03 UTC"
std::string DateTimeIso(int64_t realtime_ns);             // "2025-11-21T08:10:03.123456789Z"

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_UNITS_H_
