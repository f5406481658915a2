// Reads and writes that are whole, however often the kernel gives less or a signal interrupts.

#ifndef MEMTRACE_BASE_WHOLE_IO_H_
#define MEMTRACE_BASE_WHOLE_IO_H_

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memtrace::base {

// False, with errno, where not all could be written.
inline bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// The same at a place of the file. `*offset` becomes the end of what was written.
inline bool WriteAllAt(int fd, std::string_view bytes, uint64_t* offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(*offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    *offset += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// `bytes` from a place of the file, or what there is up to its end. False, with errno: an error,
// behind the first `*got`.
inline bool ReadUpTo(int fd, uint64_t offset, void* to, size_t bytes, size_t* got) {
  for (*got = 0; *got < bytes;) {
    const ssize_t n = pread(fd, static_cast<char*>(to) + *got, bytes - *got,
                            static_cast<off_t>(offset + *got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    *got += static_cast<size_t>(n);
  }
  return true;
}

// Gives `see` what comes, part by part, up to the end or until it returns false. False,
// with errno: an error.
template <typename See>
bool ReadParts(int fd, See see) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0 || !see(std::string_view(buffer, static_cast<size_t>(n)))) return true;
  }
}

// False: not all of them could be read.
inline bool ReadAllAt(int fd, uint64_t offset, void* to, size_t bytes) {
  size_t got;
  return ReadUpTo(fd, offset, to, bytes, &got) && got == bytes;
}

}  // namespace memtrace::base

#endif  // MEMTRACE_BASE_WHOLE_IO_H_
