// MemoryCgroup: the memory control group of a process, version 2 or 1, and its files.
//
// Where a container shows a part of the hierarchy only, paths are taken relative to what is
// mounted. The root group of version 2 has no figures of its own; none are made up.

#ifndef MEMTRACE_REPORT_PRESSURE_MEMORY_CGROUP_H_
#define MEMTRACE_REPORT_PRESSURE_MEMORY_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/pressure/kernel_files.h"

namespace memtrace::report::pressure {

struct MemoryCgroup {
  int version = 0;        // 2 or 1
  std::string path;       // as the kernel names it: "/user.slice/app"
  std::string directory;  // where its files are
  std::string mount;      // where the hierarchy begins

  bool operator==(const MemoryCgroup&) const = default;
};

// Both fail with a sentence when there is none to be seen. `groups`: by ReadCgroups().
absl::StatusOr<MemoryCgroup> FindMemoryCgroup(const KernelFiles& files, uint32_t pid);
absl::StatusOr<MemoryCgroup> MemoryCgroupIn(const KernelFiles& files, std::string groups);

struct CgroupFigures {
  std::optional<uint64_t> current_bytes, swap_bytes;
  std::optional<uint64_t> limit_bytes;  // the smallest that holds, also of a group around it
  // Events since the group was made: above memory.high, at the limit, that nothing could be
  // reclaimed, and processes in it that the OOM killer killed.
  std::optional<uint64_t> high, max, oom, oom_kill;
  std::optional<uint64_t> stall_some_us, stall_full_us;
};

// The cheap ones.
CgroupFigures ReadCgroup(const KernelFiles& files, const MemoryCgroup& cgroup);

// How many processes of this very group, not of those in it, the OOM killer has killed.
std::optional<uint64_t> OomKills(const KernelFiles& files, const MemoryCgroup& cgroup);

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_MEMORY_CGROUP_H_
