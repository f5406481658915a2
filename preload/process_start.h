// The start of a process that is traced from its begin, and not forked by one that is: its settings
// are read, what it is and has already is told, and its trace begins.

#ifndef MEMTRACE_PRELOAD_PROCESS_START_H_
#define MEMTRACE_PRELOAD_PROCESS_START_H_

namespace memtrace {

// On the thread of the first event, which waits. False: it runs untraced.
bool StartProcess();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROCESS_START_H_
