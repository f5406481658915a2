#include "report/base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace memtrace::report {
namespace {

// The limit of the control group, as a container sees its own; UINT64_MAX: none.
[[maybe_unused]] uint64_t GroupLimit() {
  uint64_t limit = UINT64_MAX;
  for (const char* file : {"/sys/fs/cgroup/memory.max",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    uint64_t bytes;
    if (in >> bytes) limit = std::min(limit, bytes);  // "max" is no number
  }
  return limit;
}

}  // namespace

void LimitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadows count as data
  const uint64_t machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t most = std::min(machine, GroupLimit()) / 4 * 3;
  struct rlimit limit;
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur <= most) return;
  limit.rlim_cur = most;
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

uint64_t MemoryLimit() {
  struct rlimit data, space;
  if (getrlimit(RLIMIT_DATA, &data) != 0 || getrlimit(RLIMIT_AS, &space) != 0) return UINT64_MAX;
  const rlim_t limit = std::min(data.rlim_cur, space.rlim_cur);
  return limit == RLIM_INFINITY ? UINT64_MAX : limit;
}

}  // namespace memtrace::report
