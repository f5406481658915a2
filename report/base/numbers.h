// Numbers that are digits and nothing else: no blanks, no sign, no 0x, which absl::SimpleAtoi() and
// absl::SimpleHexAtoi() take as well. For texts that a program wrote.

#ifndef MEMTRACE_REPORT_BASE_NUMBERS_H_
#define MEMTRACE_REPORT_BASE_NUMBERS_H_

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace memtrace::report {

// False: it is none, or has not room in 64 bits.
inline bool ParseDigits(std::string_view text, int base, uint64_t* value) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *value, base);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_NUMBERS_H_
