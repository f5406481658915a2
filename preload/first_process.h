// Whether this process is the first of its tree that is traced: the memory map of its parent shows
// it.
//
// Two things depend on that: whether it is traced at all where MEMTRACE_CHILDREN says that
// children are not, and whether it may say something on standard error.

#ifndef MEMTRACE_PRELOAD_FIRST_PROCESS_H_
#define MEMTRACE_PRELOAD_FIRST_PROCESS_H_

namespace memtrace {

// Is the parent process traced as well? Then this one is a child of the traced tree, though exec
// has made it forget. After su the parent may be another user's, and what it has mapped not ours
// to see.
enum class Parent { kTraced, kNotTraced, kHidden };

Parent LookAtParent();

// Whether to say on standard error what went wrong. The first process of a tree may: the standard
// error of its children may be read or compared by somebody. Where it is not known whether this is
// the first, only a terminal is told. A service of another user's that init started is the first.
bool MaySay();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FIRST_PROCESS_H_
