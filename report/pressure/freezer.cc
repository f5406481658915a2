#include "report/pressure/freezer.h"

#include "absl/strings/ascii.h"
#include "report/pressure/cgroup_place.h"

namespace memtrace::report::pressure {

bool IsFrozen(const KernelFiles& files, uint32_t pid) {
  const auto tables = ReadCgroupTables(files, pid);
  if (!tables.ok()) return false;
  // Both files tell of the groups around it as well.
  if (const auto place = FindCgroup(files, *tables, 2, ""); place.has_value()) {
    const auto events = files.Read(place->directory + "/cgroup.events");
    if (events.ok() && NumberAfter(*events, "frozen") == 1u) return true;
  }
  if (const auto place = FindCgroup(files, *tables, 1, "freezer"); place.has_value()) {
    const auto state = files.Read(place->directory + "/freezer.state");
    if (state.ok() && absl::StripAsciiWhitespace(*state) == "FROZEN") return true;
  }
  return false;
}

}  // namespace memtrace::report::pressure
