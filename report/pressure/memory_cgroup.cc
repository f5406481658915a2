#include "report/pressure/memory_cgroup.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "report/pressure/cgroup_place.h"

namespace memtrace::report::pressure {
namespace {

std::optional<uint64_t> ReadNumber(const KernelFiles& files, const std::string& path) {
  const auto text = files.Read(path);
  return text.ok() ? OnlyNumber(*text) : std::nullopt;
}

// A limit of version 1 that is none: PAGE_COUNTER_MAX pages, just below 2^63.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

std::optional<uint64_t> Limit(const KernelFiles& files, const MemoryCgroup& cgroup) {
  std::optional<uint64_t> least;
  const char* const file = cgroup.version == 2 ? "/memory.max" : "/memory.limit_in_bytes";
  // Each group around it limits it as well.
  std::string directory = cgroup.directory;
  while (true) {
    const auto limit = ReadNumber(files, directory + file);
    if (limit.has_value() && *limit < kNoLimit) least = std::min(least.value_or(*limit), *limit);
    if (directory.size() <= cgroup.mount.size()) break;
    directory.resize(directory.rfind('/'));
  }
  return least;
}

}  // namespace

absl::StatusOr<MemoryCgroup> FindMemoryCgroup(const KernelFiles& files, uint32_t pid) {
  auto groups = ReadCgroups(files, pid);
  if (!groups.ok()) return groups.status();
  return MemoryCgroupIn(files, *std::move(groups));
}

absl::StatusOr<MemoryCgroup> MemoryCgroupIn(const KernelFiles& files, std::string groups) {
  const auto tables = WithMounts(files, std::move(groups));
  if (!tables.ok()) return tables.status();
  // Where both are mounted, memory is controlled by the one that has its files.
  for (const int version : {2, 1}) {
    const auto place = FindCgroup(files, *tables, version, "memory");
    if (!place.has_value()) continue;
    MemoryCgroup cgroup{version, place->path, place->directory, place->mount};
    const char* const probe = version == 2 ? "/memory.current" : "/memory.usage_in_bytes";
    if (files.Exists(cgroup.directory + probe)) return cgroup;
  }
  return absl::NotFoundError("no memory control group of the program can be seen here");
}

CgroupFigures ReadCgroup(const KernelFiles& files, const MemoryCgroup& cgroup) {
  CgroupFigures figures;
  const std::string& at = cgroup.directory;
  figures.limit_bytes = Limit(files, cgroup);
  if (cgroup.version == 2) {
    figures.current_bytes = ReadNumber(files, at + "/memory.current");
    figures.swap_bytes = ReadNumber(files, at + "/memory.swap.current");
    if (const auto events = files.Read(at + "/memory.events"); events.ok()) {
      figures.high = NumberAfter(*events, "high");
      figures.max = NumberAfter(*events, "max");
      figures.oom = NumberAfter(*events, "oom");
      figures.oom_kill = NumberAfter(*events, "oom_kill");
    }
    if (const auto stalls = files.Read(at + "/memory.pressure"); stalls.ok()) {
      figures.stall_some_us = StallTotal(*stalls, "some");
      figures.stall_full_us = StallTotal(*stalls, "full");
    }
    return figures;
  }
  figures.current_bytes = ReadNumber(files, at + "/memory.usage_in_bytes");
  const auto with_swap = ReadNumber(files, at + "/memory.memsw.usage_in_bytes");
  if (with_swap.has_value() && figures.current_bytes.has_value()) {
    figures.swap_bytes = *with_swap - std::min(*with_swap, *figures.current_bytes);
  }
  figures.max = ReadNumber(files, at + "/memory.failcnt");
  figures.oom_kill = OomKills(files, cgroup);
  return figures;
}

std::optional<uint64_t> OomKills(const KernelFiles& files, const MemoryCgroup& cgroup) {
  const auto read = [&](const char* file) -> std::optional<uint64_t> {
    const auto text = files.Read(cgroup.directory + file);
    return text.ok() ? NumberAfter(*text, "oom_kill") : std::nullopt;
  };
  if (cgroup.version == 1) return read("/memory.oom_control");
  const auto local = read("/memory.events.local");
  return local.has_value() ? local : read("/memory.events");  // before Linux 5.2
}

}  // namespace memtrace::report::pressure
