// FileRecorder: which files an answer rests on, by what they were when they were looked at.
//
// ElfFile::Open() notes every path that it tries in the recorder of its thread, if there is one.

#ifndef MEMTRACE_SYMBOLIZER_FILE_RECORDER_H_
#define MEMTRACE_SYMBOLIZER_FILE_RECORDER_H_

#include <vector>

#include "base/file_stamp.h"

namespace memtrace::symbolizer {

// While it lives, `stamps` receives each path that is opened on this thread, once.
class FileRecorder {
 public:
  explicit FileRecorder(std::vector<base::FileStamp>* stamps);
  ~FileRecorder();
  FileRecorder(const FileRecorder&) = delete;
  FileRecorder& operator=(const FileRecorder&) = delete;

  static void Note(const base::FileStamp& stamp);

 private:
  std::vector<base::FileStamp>* const stamps_;
  FileRecorder* const outer_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_FILE_RECORDER_H_
