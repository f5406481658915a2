// Whether somebody may write to a file now: as long as it is open for writing, or a shared mapping of it that may be
// written is there, the kernel grants no read lease on it.

#ifndef MEMTRACE_REPORT_FILE_WRITERS_H_
#define MEMTRACE_REPORT_FILE_WRITERS_H_

#include <fcntl.h>

#include <cerrno>

namespace memtrace::report {

// kNotKnown: a file of somebody else's, or on a file system that grants no leases.
enum class Writers { kNone, kSome, kNotKnown };

// `fd`: of a regular file, open for reading alone.
inline Writers WritersOf(int fd) {
  if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return Writers::kNone;
  }
  return errno == EAGAIN ? Writers::kSome : Writers::kNotKnown;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FILE_WRITERS_H_
