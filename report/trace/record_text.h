// RecordText(): the next text of a record. A hostile trace might have very long ones.

#ifndef MEMTRACE_REPORT_TRACE_RECORD_TEXT_H_
#define MEMTRACE_REPORT_TRACE_RECORD_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "format/record_decoder.h"

namespace memtrace::report {

inline constexpr size_t kLongestText = 4096;  // PATH_MAX

// The next text of `body`; one that is longer than `longest` is cut, and ends in "...".
inline std::string RecordText(format::RecordBody& body, size_t longest = kLongestText) {
  const std::string_view text = body.Bytes();
  const bool too_long = text.size() > longest;
  std::string read(too_long ? text.substr(0, longest - 3) : text);
  if (too_long) read += "...";
  return read;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_RECORD_TEXT_H_
