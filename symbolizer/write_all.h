// WriteAll: the whole of some bytes to a descriptor, however often that is interrupted.

#ifndef MEMTRACE_SYMBOLIZER_WRITE_ALL_H_
#define MEMTRACE_SYMBOLIZER_WRITE_ALL_H_

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace memtrace::symbolizer {

// False, with errno, where not all could be written.
inline bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_WRITE_ALL_H_
