// OomWatch: was it the kernel's OOM killer that sent the SIGKILL?
//
// Three witnesses, asked before the program runs and after it has ended:
//   the kernel log     names the process; for root in the first pid namespace
//   oom_kill of the program's control group    counts those killed in it
//   oom_kill of /proc/vmstat                   counts those killed on this machine
// The counters rise before the signal is sent, the line in the log is written just
// after it. A count does not say who was killed: another process of the group may
// have been, and where that cannot be excluded the verdict says so.
//
// Judge() runs when the program has ended. One thread.

#ifndef MEMTRACE_REPORT_PRESSURE_OOM_WATCH_H_
#define MEMTRACE_REPORT_PRESSURE_OOM_WATCH_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "format/records.h"
#include "report/base/unique_fd.h"
#include "report/pressure/kernel_files.h"
#include "report/pressure/memory_cgroup.h"

namespace memtrace::report::pressure {

struct Kill {
  format::KillVerdict verdict = format::KillVerdict::kNotKnown;
  std::string why;     // a sentence
  std::string cgroup;  // of the program, empty: none seen
  uint64_t limit_bytes = 0;
};

class OomWatch {
 public:
  // `log_path`: of the kernel log, or empty where its process ids are not ours.
  OomWatch(KernelFiles files, uint32_t pid, const std::string& log_path);

  // Where the program is now, seen at the start and at each sample.
  void Follow(const std::optional<MemoryCgroup>& cgroup);

  // After a SIGKILL.
  Kill Judge();

  // How many processes the OOM killer ended in the program's control group since the program was
  // first seen there, whatever became of the program; 0: none, or it is not known.
  uint64_t kills_in_group() const;

  // "/dev/kmsg" for those who see the first pid namespace's ids, else empty.
  static std::string KernelLogPath();

 private:
  void ReadLog();
  std::optional<uint64_t> SystemKills() const;

  const KernelFiles files_;
  const uint32_t pid_;
  UniqueFd log_;
  std::string tail_;  // of the log, a line that is not complete
  std::set<uint32_t> killed_;  // by the log
  std::optional<MemoryCgroup> cgroup_;
  std::optional<uint64_t> limit_bytes_;
  std::optional<uint64_t> group_before_, system_before_;
};

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_OOM_WATCH_H_
