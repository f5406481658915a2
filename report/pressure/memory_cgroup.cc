#include "report/pressure/memory_cgroup.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

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

// The mount of version 2, or of the hierarchy of version 1 that has the memory controller.
std::optional<Mount> FindMount(absl::string_view mountinfo, int version) {
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<absl::string_view> left = absl::StrSplit(halves[0], ' ');
    const std::vector<absl::string_view> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    const bool wanted = version == 2 ? right[0] == "cgroup2"
                                     : right[0] == "cgroup" && ListHas(right[2], "memory");
    if (wanted) return Mount{Unescaped(left[3]), Unescaped(left[4])};
  }
  return std::nullopt;
}

// The line of /proc/PID/cgroup: "0::/path" for version 2, "4:memory:/path" for version 1.
std::optional<std::string> PathIn(absl::string_view cgroups, int version) {
  for (const absl::string_view line : absl::StrSplit(cgroups, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (version == 2 ? parts[0] == "0" && parts[1].empty() : ListHas(parts[1], "memory")) {
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
  const auto groups = files.Read(ProcPath(pid, "cgroup"));
  if (!groups.ok()) {
    return absl::Status(groups.status().code(),
                        absl::StrCat("/proc/PID/cgroup: ", groups.status().message()));
  }
  const auto mounts = files.Read("/proc/self/mountinfo");
  if (!mounts.ok()) {
    return absl::Status(mounts.status().code(),
                        absl::StrCat("/proc/self/mountinfo: ", mounts.status().message()));
  }
  // Where both are mounted, memory is controlled by the one that has its files.
  for (const int version : {2, 1}) {
    const auto mount = FindMount(*mounts, version);
    const auto path = PathIn(*groups, version);
    if (!mount.has_value() || !path.has_value()) continue;
    MemoryCgroup cgroup{version, *path, DirectoryOf(files, *mount, *path), mount->point};
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
