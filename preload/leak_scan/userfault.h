// A userfaultfd of the program's own: whether one is open.
//
// It may be told of a fork (UFFD_FEATURE_EVENT_FORK), and then the fork waits until somebody has
// read that. Who reads stands while a scan makes its copy.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_USERFAULT_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_USERFAULT_H_

namespace memtrace {

// Asks the kernel what each descriptor is, for there are several ways to one: the system
// call, /dev/userfaultfd, another process that sends its own. A microsecond for each, so
// not while threads stand.
bool HasUserfaultfd();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_USERFAULT_H_
