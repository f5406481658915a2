// raw_log: one line to standard error, without stdio.
//
// For what the user must know because no trace can say it: a wrong setting, a
// trace that could not be made. Nothing is printed when all is well.

#ifndef MEMTRACE_PRELOAD_RAW_LOG_H_
#define MEMTRACE_PRELOAD_RAW_LOG_H_

#include <string_view>

#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

template <typename... Parts>
void RawLog(const Parts&... parts) {
  Text<768> text;
  text << "memtrace: ";
  (text << ... << parts);
  // Of a name of the program or the user: one line it stays, and moves no cursor.
  Text<800> line;
  for (const char c : text.view()) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line << std::string_view(control ? "?" : &c, 1);
  }
  line << "\n";
  // Where standard error is a file that may not become as long, the kernel would answer with
  // SIGXFSZ.
  const uint64_t limit = sys::FileSizeLimit();
  struct stat info;
  if (limit != UINT64_MAX && !sys::Failed(sys::Fstat(2, &info)) && S_ISREG(info.st_mode) &&
      static_cast<uint64_t>(info.st_size) + line.size() > limit) {
    return;
  }
  sys::Write(2, line.c_str(), line.size());
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_RAW_LOG_H_
