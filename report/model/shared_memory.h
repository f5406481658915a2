// Which mappings are of memory that processes share, by the names that the kernel gives them.

#ifndef MEMTRACE_REPORT_MODEL_SHARED_MEMORY_H_
#define MEMTRACE_REPORT_MODEL_SHARED_MEMORY_H_

#include <string_view>

namespace memtrace::report {

// Of a mapping that is shared and has an inode: whether it is no file on a disk. `path` may have
// the kernel's " (deleted)" behind it.
inline bool IsSharedMemory(std::string_view path) {
  return path == "/dev/zero" || path.starts_with("/dev/zero ") || path.starts_with("/SYSV") ||
         path.starts_with("/dev/shm/") || path.starts_with("/memfd:");
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_SHARED_MEMORY_H_
