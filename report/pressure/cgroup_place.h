// CgroupPlace: the control group of a process, in the hierarchy of version 2 or in that of
// version 1 which has a controller.
//
// Where a container shows a part of the hierarchy only, paths are taken relative to what is
// mounted.

#ifndef MEMTRACE_REPORT_PRESSURE_CGROUP_PLACE_H_
#define MEMTRACE_REPORT_PRESSURE_CGROUP_PLACE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/pressure/kernel_files.h"

namespace memtrace::report::pressure {

// What the kernel says of all hierarchies.
struct CgroupTables {
  std::string groups;  // by ReadCgroups()
  std::string mounts;  // /proc/self/mountinfo
};

// /proc/PID/cgroup of a thread that lives, the main thread where it does. Version 1 has one that
// exits in the root group, and a main thread may do so long before the others. Fails with a
// sentence, also where none lives.
absl::StatusOr<std::string> ReadCgroups(const KernelFiles& files, uint32_t pid);

// Both fail with a sentence.
absl::StatusOr<CgroupTables> WithMounts(const KernelFiles& files, std::string groups);
absl::StatusOr<CgroupTables> ReadCgroupTables(const KernelFiles& files, uint32_t pid);

struct CgroupPlace {
  std::string path;       // as the kernel names it: "/user.slice/app"
  std::string directory;  // where its files are
  std::string mount;      // where the hierarchy begins
};

// `version`: 2, or 1 with its `controller`, "memory". Nothing: there is no such hierarchy here.
std::optional<CgroupPlace> FindCgroup(const KernelFiles& files, const CgroupTables& tables,
                                      int version, absl::string_view controller);

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_CGROUP_PLACE_H_
