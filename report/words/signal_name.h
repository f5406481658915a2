// SignalName: "SIGKILL", or "signal 99" where a number has no name. Any thread.

#ifndef MEMTRACE_REPORT_WORDS_SIGNAL_NAME_H_
#define MEMTRACE_REPORT_WORDS_SIGNAL_NAME_H_

#include <string>

namespace memtrace::report::words {

std::string SignalName(int signal);

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_SIGNAL_NAME_H_
