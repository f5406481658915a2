// A fork child: it forgets what was its parent's, and begins a trace of its own at its first event.

#ifndef MEMTRACE_PRELOAD_FORK_CHILD_H_
#define MEMTRACE_PRELOAD_FORK_CHILD_H_

namespace memtrace {

// To be called in a fork child, before anything else: see TraceFile::CloseInherited() and
// CloseInheritedDescriptors().
void CloseParentsFiles();

// On the thread of the first event. False: it runs untraced.
bool StartForkChild();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FORK_CHILD_H_
