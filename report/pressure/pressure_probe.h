// PressureProbe: reads the figures of one program, its control group and the system.
//
// The cheap ones take no lock of the program's. smaps_rollup holds its mmap lock for
// reading while it walks the page tables, memory.stat makes the kernel add up, and
// the process tree has a directory for each thread: these only when asked, and the
// caller sees to it that they take a small share of the time (pressure_sampler.h).
//
// What cannot be read is not known, and said once. One thread.

#ifndef MEMTRACE_REPORT_PRESSURE_PRESSURE_PROBE_H_
#define MEMTRACE_REPORT_PRESSURE_PRESSURE_PROBE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/pressure/kernel_files.h"
#include "report/pressure/memory_cgroup.h"
#include "report/pressure/pressure_sample.h"

namespace memtrace::report::pressure {

class PressureProbe {
 public:
  PressureProbe(KernelFiles files, uint32_t pid);

  void ReadCheap(PressureSample* sample);
  void ReadCostly(PressureSample* sample);

  // Where the program was last seen; programs move themselves (systemd-run).
  const std::optional<MemoryCgroup>& cgroup() const { return cgroup_; }

  // A sentence for each file that could not be read while the program ran; at most one each.
  std::vector<std::string> Notes() const;

 private:
  std::optional<std::string> ReadOf(const std::string& path, const char* name,
                                    const char* without);
  void ReadProcess(PressureSample* sample);
  void ReadSystem(PressureSample* sample);
  void ReadGroup(PressureSample* sample);
  void ReadTree(PressureSample* sample);

  const KernelFiles files_;
  const uint32_t pid_;
  std::string groups_;  // by ReadCgroups(), the last
  std::optional<MemoryCgroup> cgroup_;
  std::map<std::string, std::string> notes_;  // by name of the file
};

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_PRESSURE_PROBE_H_
