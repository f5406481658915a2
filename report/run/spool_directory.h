// SpoolDirectory: where the traced processes write while they run.
//
// A private, hidden directory beside the output file, so that the packed trace gets its
// name by a rename. In it:
//   RUN                     the name of the output, for `memtrace run --finish`
//   PROGRAM.PID.START.mtr   the raw trace of a process, written by the library
//   ... .mtr.packed         what has been packed of it so far
// It is removed at the end when it is empty, and left with its content otherwise.

#ifndef MEMTRACE_REPORT_RUN_SPOOL_DIRECTORY_H_
#define MEMTRACE_REPORT_RUN_SPOOL_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/trace/run_record.h"

namespace memtrace::report {

inline constexpr char kPackedSuffix[] = ".packed";

class SpoolDirectory {
 public:
  // Creates .NAME.spool.XXXXXX, mode 0700, beside `near_output`. The message says what is wrong.
  static absl::StatusOr<SpoolDirectory> Create(const std::string& near_output);
  // One that an earlier run left.
  static absl::StatusOr<SpoolDirectory> Open(const std::string& path);

  const std::string& path() const { return path_; }  // absolute

  // The value of MEMTRACE_OUT, with every % of the path itself doubled.
  std::string OutPattern() const;

  absl::Status WriteRunRecord(const RunRecord& record) const;
  absl::StatusOr<RunRecord> ReadRunRecord() const;

  // Full paths of the raw traces, in order of name.
  std::vector<std::string> RawTraces() const;

  // Removes the run record and the directory, if there is nothing else in it.
  bool RemoveIfEmpty() const;

 private:
  explicit SpoolDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Whether a raw trace is in such a directory: by its name and its run record, which is there before
// the first trace and until the last is gone.
bool IsInSpool(const std::string& trace);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_SPOOL_DIRECTORY_H_
