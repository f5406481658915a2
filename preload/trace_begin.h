// The trace of this process begins: its file, what of g_process is counted anew with each trace,
// and its first record. For a process that starts as for a fork child.

#ifndef MEMTRACE_PRELOAD_TRACE_BEGIN_H_
#define MEMTRACE_PRELOAD_TRACE_BEGIN_H_

#include <cstdint>

namespace memtrace {

// Creates the trace of this process. False: it runs untraced. The parent's identity is 0
// for a process that is no fork child.
bool BeginTrace(uint64_t parent_trace_id);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_BEGIN_H_
