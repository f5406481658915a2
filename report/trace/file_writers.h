// Whether somebody may write to a raw trace now, and whether that may be its process.

#ifndef MEMTRACE_REPORT_TRACE_FILE_WRITERS_H_
#define MEMTRACE_REPORT_TRACE_FILE_WRITERS_H_

#include <cstdint>
#include <string>

namespace memtrace::report {

// kNotKnown: a file of somebody else's, or on a file system that grants no leases.
enum class Writers { kNone, kSome, kNotKnown };

// Whether anybody may write to the file: the kernel grants no read lease on a file while it
// is open for writing, or a shared mapping of it may be written to. `fd`: a regular file,
// open for reading only.
Writers WritersOf(int fd);

// The process has the file mapped, to write to it. Where an overlay is (containers),
// its leases do not tell.
bool IsMappedBy(uint32_t pid, const std::string& path);

// False: there is no process of that number, or it has ended and nobody has waited for it.
// `pid_namespace` is what the number is of; in another one than ours it says nothing.
bool MayBeAlive(uint32_t pid, uint64_t pid_namespace);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_FILE_WRITERS_H_
