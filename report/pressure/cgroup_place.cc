#include "report/pressure/cgroup_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/base/proc_stat.h"

namespace memtrace::report::pressure {
namespace {

struct Mount {
  std::string root, point;
};

// Blanks, tabs, line ends and backslashes of paths are \ooo in mountinfo.
std::string Unescaped(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool ListHas(absl::string_view list, absl::string_view word) {
  const std::vector<absl::string_view> words = absl::StrSplit(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The mount of version 2, or of the hierarchy of version 1 that has the controller.
std::optional<Mount> FindMount(absl::string_view mountinfo, int version,
                               absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<absl::string_view> left = absl::StrSplit(halves[0], ' ');
    const std::vector<absl::string_view> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    const bool wanted = version == 2 ? right[0] == "cgroup2"
                                     : right[0] == "cgroup" && ListHas(right[2], controller);
    if (wanted) return Mount{Unescaped(left[3]), Unescaped(left[4])};
  }
  return std::nullopt;
}

// The line of /proc/PID/cgroup: "0::/path" for version 2, "4:memory:/path" for version 1.
std::optional<std::string> PathIn(absl::string_view cgroups, int version,
                                  absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(cgroups, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (version == 2 ? parts[0] == "0" && parts[1].empty() : ListHas(parts[1], controller)) {
      return std::string(parts[2]);
    }
  }
  return std::nullopt;
}

std::string DirectoryOf(const KernelFiles& files, const Mount& mount, const std::string& path) {
  absl::string_view below = path;
  if (mount.root != "/") absl::ConsumePrefix(&below, mount.root);
  if (below == "/") below = "";
  std::string directory = absl::StrCat(mount.point, below);
  // A group outside of what is mounted here: the mounted one holds us all.
  return files.Exists(directory) ? directory : mount.point;
}

// By the line of /proc/PID/stat. The flag comes before the state.
bool Exits(absl::string_view stat) {
  constexpr uint64_t kExiting = 4;  // PF_EXITING of linux/sched.h
  const absl::string_view state = ProcStatField(stat, 3);
  const uint64_t flags = OnlyNumber(ProcStatField(stat, 9)).value_or(0);
  return state == "Z" || state == "X" || (flags & kExiting) != 0;
}

// `task`: "" for the main thread, or "task/TID/".
absl::StatusOr<std::string> CgroupsOf(const KernelFiles& files, uint32_t pid,
                                      absl::string_view task) {
  auto groups = files.Read(ProcPath(pid, absl::StrCat(task, "cgroup")));
  if (!groups.ok()) {
    return absl::Status(groups.status().code(),
                        absl::StrCat("/proc/PID/cgroup: ", groups.status().message()));
  }
  // Asked afterwards: who lives now lived when its groups were read.
  const auto stat = files.Read(ProcPath(pid, absl::StrCat(task, "stat")));
  if (!stat.ok() || Exits(*stat)) return absl::NotFoundError("the program has ended");
  return groups;
}

}  // namespace

absl::StatusOr<std::string> ReadCgroups(const KernelFiles& files, uint32_t pid) {
  auto groups = CgroupsOf(files, pid, "");
  if (groups.ok()) return groups;
  for (const std::string& thread : files.List(ProcPath(pid, "task"))) {
    auto of_thread = CgroupsOf(files, pid, absl::StrCat("task/", thread, "/"));
    if (of_thread.ok()) return of_thread;
  }
  return groups;
}

absl::StatusOr<CgroupTables> WithMounts(const KernelFiles& files, std::string groups) {
  auto mounts = files.Read("/proc/self/mountinfo");
  if (!mounts.ok()) {
    return absl::Status(mounts.status().code(),
                        absl::StrCat("/proc/self/mountinfo: ", mounts.status().message()));
  }
  return CgroupTables{std::move(groups), *std::move(mounts)};
}

absl::StatusOr<CgroupTables> ReadCgroupTables(const KernelFiles& files, uint32_t pid) {
  auto groups = ReadCgroups(files, pid);
  if (!groups.ok()) return groups.status();
  return WithMounts(files, *std::move(groups));
}

std::optional<CgroupPlace> FindCgroup(const KernelFiles& files, const CgroupTables& tables,
                                      int version, absl::string_view controller) {
  const auto mount = FindMount(tables.mounts, version, controller);
  const auto path = PathIn(tables.groups, version, controller);
  if (!mount.has_value() || !path.has_value()) return std::nullopt;
  return CgroupPlace{*path, DirectoryOf(files, *mount, *path), mount->point};
}

}  // namespace memtrace::report::pressure
