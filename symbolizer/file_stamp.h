// FileStamp: what a file was when it was looked at, so that it is noticed when another one
// stands in its place, or any in the place of none.
//
// ElfFile::Open() notes every path that it tries in the recorder of its thread, if there is one.

#ifndef MEMTRACE_SYMBOLIZER_FILE_STAMP_H_
#define MEMTRACE_SYMBOLIZER_FILE_STAMP_H_

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace memtrace::symbolizer {

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

// While it lives, `stamps` receives each path that is opened on this thread, once.
class FileRecorder {
 public:
  explicit FileRecorder(std::vector<FileStamp>* stamps);
  ~FileRecorder();
  FileRecorder(const FileRecorder&) = delete;
  FileRecorder& operator=(const FileRecorder&) = delete;

  static void Note(const FileStamp& stamp);

 private:
  std::vector<FileStamp>* const stamps_;
  FileRecorder* const outer_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_FILE_STAMP_H_
