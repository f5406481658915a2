// FileStamp: what a file was when it was looked at, so that it is noticed when another one
// stands in its place, or any in the place of none.

#ifndef MEMTRACE_BASE_FILE_STAMP_H_
#define MEMTRACE_BASE_FILE_STAMP_H_

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <string>

namespace memtrace::base {

int64_t NsOf(const struct timespec& time);

struct FileStamp {
  std::string path;
  bool exists = false;  // and then all of the following is known
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // mtime; ctime, which nobody can set back

  static FileStamp Of(const std::string& path);
  static FileStamp Of(const std::string& path, const struct stat& st);
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

}  // namespace memtrace::base

#endif  // MEMTRACE_BASE_FILE_STAMP_H_
