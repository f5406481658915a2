// What the C and C++ runtime keeps until the process ends, and memcheck has freed before it
// looks (__libc_freeres) or has in its own default.supp. In Valgrind's syntax; every line of it
// is about possible and reachable blocks: nothing here hides what is definitely lost.

#ifndef MEMTRACE_REPORT_SUPPRESS_RUNTIME_SUPPRESSIONS_H_
#define MEMTRACE_REPORT_SUPPRESS_RUNTIME_SUPPRESSIONS_H_

#include "absl/strings/string_view.h"

namespace memtrace::report::suppress {

absl::string_view RuntimeSuppressions();

}  // namespace memtrace::report::suppress

#endif  // MEMTRACE_REPORT_SUPPRESS_RUNTIME_SUPPRESSIONS_H_
