// raw_log: one line to standard error, without stdio.
//
// For what the user must know because no trace can say it: a wrong setting, a
// trace that could not be made. Nothing is printed when all is well.
//
// It hurts nobody: where standard error is a pipe that is full, a stopped terminal, or has no
// reader any more, or a file that may not become as long, there is no line.

#ifndef MEMTRACE_PRELOAD_RAW_LOG_H_
#define MEMTRACE_PRELOAD_RAW_LOG_H_

#include <string_view>

#include "preload/text.h"

namespace memtrace {

// Whole, or not at all.
void WriteToStandardError(std::string_view line);

template <typename... Parts>
void RawLog(const Parts&... parts) {
  Text<768> text;
  text << "memtrace: ";
  (text << ... << parts);
  // A name that the program or the user chose may have control characters: the line must stay one
  // line and must not move the cursor.
  Text<800> line;
  for (const char c : text.view()) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line << std::string_view(control ? "?" : &c, 1);
  }
  line << "\n";
  WriteToStandardError(line.view());
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_RAW_LOG_H_
