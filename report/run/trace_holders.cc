#include "report/run/trace_holders.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/pages/proc_maps.h"
#include "report/pressure/kernel_files.h"
#include "report/run/output_name.h"

namespace memtrace::report {
namespace {

// By the name first: to ask a file system that is gone what it has there could take for ever.
bool HasOpen(const pressure::KernelFiles& files, uint32_t pid, const std::string& raw_path,
             const struct stat& trace) {
  const std::string directory = pressure::ProcPath(pid, "fd");
  for (const std::string& fd : files.List(directory)) {
    struct stat info;
    char name[PATH_MAX];
    const std::string link = absl::StrCat(directory, "/", fd);
    const ssize_t n = readlink(link.c_str(), name, sizeof(name));
    if (n <= 0 || Basename({name, static_cast<size_t>(n)}) != Basename(raw_path)) continue;
    if (stat(link.c_str(), &info) == 0 && info.st_ino == trace.st_ino &&
        info.st_dev == trace.st_dev) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string ProgramRunBy(uint32_t pid) {
  char path[PATH_MAX];
  const ssize_t n = readlink(pressure::ProcPath(pid, "exe").c_str(), path, sizeof(path));
  if (n > 0) {
    const absl::string_view file(path, static_cast<size_t>(n));
    return std::string(Basename(absl::StripSuffix(file, " (deleted)")));
  }
  const auto name = pressure::KernelFiles().Read(pressure::ProcPath(pid, "comm"));
  return name.ok() ? std::string(absl::StripSuffix(*name, "\n")) : "";
}

std::vector<TraceHolder> HoldersOf(const std::string& raw_path) {
  struct stat trace;
  if (stat(raw_path.c_str(), &trace) != 0) return {};
  // Of the trace: its header and status.
  const auto first_page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const pressure::KernelFiles files;
  std::vector<TraceHolder> holders;
  for (const uint32_t pid : files.Pids()) {
    if (pid == static_cast<uint32_t>(getpid())) continue;
    std::vector<pages::Mapping> mappings;
    if (!pages::ReadMaps(pressure::ProcPath(pid, "maps"), &mappings).ok()) continue;
    TraceHolder holder{.pid = pid};
    bool holds = false;
    for (const pages::Mapping& mapping : mappings) {
      // On some file systems maps have another device number than stat: the name, in which are the
      // pid and the time, is as good.
      if (mapping.inode != trace.st_ino || Basename(mapping.name) != Basename(raw_path)) continue;
      holds = true;
      holder.may_write |= mapping.offset + mapping.bytes() > first_page;
    }
    if (HasOpen(files, pid, raw_path, trace)) holds = holder.may_write = true;
    if (!holds) continue;
    holder.program = ProgramRunBy(pid);
    holders.push_back(std::move(holder));
  }
  return holders;
}

std::vector<TraceHolder> ProcessesOf(const SpoolDirectory& spool) {
  const pressure::KernelFiles files;
  const std::string wanted = absl::StrCat("MEMTRACE_OUT=", spool.OutPattern());
  // A forked child that has recorded nothing has its parent's trace mapped, also when the file has
  // been removed. It is known by that where it has written a title over its environment.
  const std::string below = absl::StrCat(spool.path(), "/");
  const auto has_trace_mapped = [&](uint32_t pid) {
    std::vector<pages::Mapping> mappings;
    return pages::ReadMaps(pressure::ProcPath(pid, "maps"), &mappings).ok() &&
           std::any_of(mappings.begin(), mappings.end(), [&](const pages::Mapping& mapping) {
             return absl::StartsWith(mapping.name, below);
           });
  };
  std::vector<TraceHolder> found;
  for (const uint32_t pid : files.Pids()) {
    if (pid == static_cast<uint32_t>(getpid())) continue;
    const auto environment = files.Read(pressure::ProcPath(pid, "environ"));
    // Each variable ends with a zero.
    const std::string all =
        absl::StrCat(absl::string_view("\0", 1), environment.ok() ? *environment : "",
                     absl::string_view("\0", 1));
    const std::string variable =
        absl::StrCat(absl::string_view("\0", 1), wanted, absl::string_view("\0", 1));
    if (all.find(variable) == std::string::npos && !has_trace_mapped(pid)) continue;
    found.push_back({pid, ProgramRunBy(pid), false});
  }
  return found;
}

}  // namespace memtrace::report
