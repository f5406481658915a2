// How a process ended, in the words of all commands. Any thread.

#ifndef MEMTRACE_REPORT_WORDS_PROCESS_END_H_
#define MEMTRACE_REPORT_WORDS_PROCESS_END_H_

#include <string>

#include "absl/strings/string_view.h"
#include "report/findings/process_info.h"

namespace memtrace::report::words {

// "exit", "exec", "signal", "cut": in every format that machines read.
absl::string_view EndName(ProcessInfo::End end);

// For a column: "exit 1", "exec", "SIGSEGV", "cut", "at work".
std::string ShortEnd(const ProcessInfo& process);

// For a line: "exit status 1", "replaced itself by exec", "killed by the OOM killer (SIGKILL)".
std::string EndPhrase(const ProcessInfo& process);

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_PROCESS_END_H_
