// ProcessWatch: is the process that writes a raw trace gone for good?
//
// Two witnesses, and both must say so, because packing ends with the removal of
// the raw file:
//   - the pid, held by a pidfd so that it cannot be reused unseen; a process that
//     started after the trace was created is another one with the same number;
//   - the file: as long as somebody maps one of its rings or has it open for
//     writing, the kernel grants no read lease on it. This catches a vfork child
//     that shares the memory, and pids that were counted in another pid namespace.

#ifndef MEMTRACE_REPORT_RUN_PROCESS_WATCH_H_
#define MEMTRACE_REPORT_RUN_PROCESS_WATCH_H_

#include <cstdint>

#include "report/base/unique_fd.h"

namespace memtrace::report {

class ProcessWatch {
 public:
  // `raw_fd` is open for reading on the trace, and stays the caller's.
  ProcessWatch(uint32_t pid, int raw_fd);

  // Sets the inode of the process's pid namespace, as the trace has it. In another namespace than
  // ours the pid is somebody else's, and only the file tells whether the process is gone; where the
  // kernel grants no leases on it, the process never counts as gone.
  void SetPidNamespace(uint64_t inode);

  // Whether the process is in another pid namespace than ours, and in which; 0: not known, or ours.
  bool foreign() const { return foreign_; }
  uint64_t foreign_namespace() const { return foreign_ ? pid_namespace_ : 0; }

  bool Ended() const;
  // Whether the pid, of our namespace, is gone. The file may still have writers.
  bool ProcessGone() const { return !foreign_ && PidEnded(); }

 private:
  bool PidEnded() const;

  uint32_t pid_;
  int raw_fd_;
  UniqueFd pidfd_;
  bool gone_ = false;
  uint64_t pid_namespace_ = 0;
  bool foreign_ = false;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_PROCESS_WATCH_H_
