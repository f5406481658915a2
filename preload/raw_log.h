// raw_log: one line to standard error, without stdio.
//
// For what the user must know because no trace can say it: a wrong setting, a
// trace that could not be made. Nothing is printed when all is well.

#ifndef MEMTRACE_PRELOAD_RAW_LOG_H_
#define MEMTRACE_PRELOAD_RAW_LOG_H_

#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

template <typename... Parts>
void RawLog(const Parts&... parts) {
  Text<768> line;
  line << "memtrace: ";
  (line << ... << parts) << "\n";
  sys::Write(2, line.c_str(), line.size());
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_RAW_LOG_H_
