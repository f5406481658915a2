// ScratchDirectory: a new directory below $TMPDIR or /tmp, for this user alone, removed with all
// that is in it when the object goes.
//
//   ScratchDirectory scratch("memtrace-check");
//   if (scratch.path().empty()) say(scratch.error())

#ifndef MEMTRACE_REPORT_BASE_SCRATCH_DIRECTORY_H_
#define MEMTRACE_REPORT_BASE_SCRATCH_DIRECTORY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report {

class ScratchDirectory {
 public:
  explicit ScratchDirectory(absl::string_view name);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }    // empty: there is none
  const std::string& error() const { return error_; }  // why not

 private:
  std::string path_, error_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_SCRATCH_DIRECTORY_H_
