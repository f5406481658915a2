#include "report/command/running_trace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "format/event_words.h"
#include "format/trace_format.h"
#include "report/base/map_line.h"
#include "report/base/unique_fd.h"
#include "report/command/process_status.h"
#include "report/run/spool_directory.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

// A path that another process named. Nothing is opened that is no plain file, nor a link, and
// nothing waited for.
bool IsTraceOf(uint32_t pid, const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  format::FileHeader header = {};
  return fd.ok() && pread(fd.get(), &header, sizeof(header), 0) == ssize_t{sizeof(header)} &&
         memcmp(header.magic, format::kFileMagic, sizeof(header.magic)) == 0 && header.pid == pid;
}

// Whether it is the file of a line of maps. The device is another there on some file systems.
bool IsFileOfLine(const std::string& path, const MapLine& line) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && info.st_ino == line.inode;
}

// Whether the process was started with another file system below "/" than ours, as in a container.
// One that went there by itself (chroot) has its files where we have them.
bool HasRootOfItsOwn(const std::string& task) {
  const std::string its_root = absl::StrCat(task, "/root");
  struct stat its, ours;
  if (stat(absl::StrCat(its_root, "/").c_str(), &its) != 0 || stat("/", &ours) != 0 ||
      (its.st_dev == ours.st_dev && its.st_ino == ours.st_ino)) {
    return false;
  }
  // Of other mounts it is "/".
  std::error_code error;
  const std::string root = std::filesystem::read_symlink(its_root, error);
  const std::string program = std::filesystem::read_symlink(absl::StrCat(task, "/exe"), error);
  return root == "/" || absl::StartsWith(program, absl::StrCat(root, "/"));
}

// The owner of its files in /proc is root where it is not dumpable.
bool IsOfOurUser(int pid) {
  const std::string users = StatusField(absl::StrCat("/proc/", pid), "Uid:");
  uint32_t real = 0;
  return absl::SimpleAtoi(users.substr(0, users.find_first_of(" \t")), &real) && real == getuid();
}

bool MayTraceOthers() {
  uint64_t rights = 0;
  return absl::SimpleHexAtoi(StatusField("/proc/self", "CapEff:"), &rights) &&
         (rights >> CAP_SYS_PTRACE & 1) != 0;
}

// What helps where `pid` could not be looked at because of `error`: empty, or ": " and words. To
// root there is nobody to be sent to but root of elsewhere.
std::string WhoMayLook(int pid, int error) {
  if (error != EACCES && error != EPERM) return "";
  if (geteuid() == 0) {
    return MayTraceOthers()
               ? ": the kernel keeps it from root here: it belongs to another user namespace (ask "
                 "from there), or a security module protects it"
               : ": root has no CAP_SYS_PTRACE here, as in most containers; ask from outside, or "
                 "give it that";
  }
  return IsOfOurUser(pid) ? ": it does not let its own user look at it (PR_SET_DUMPABLE, or it has "
                            "changed its user): ask as root"
                          : ": ask as its user, or as root";
}

bool HasAllocation(std::span<const uint64_t> words) {
  for (size_t i = 0; i < words.size();) {
    const format::EventKind kind = format::KindOf(words[i]);
    if (format::EventKind::kMalloc <= kind && kind <= format::EventKind::kReallocIntent) {
      return true;
    }
    const uint32_t length = format::EventWords(words[i]);
    if (length == 0) break;  // the words are damaged
    i += length;
  }
  return false;
}

bool HasAllocation(TraceReader& reader) {
  std::vector<uint64_t> words;
  for (const ThreadStream& stream : reader.streams()) {
    for (const BlockRef& block : stream.blocks) {
      if (reader.ReadEvents(stream, block, &words) && HasAllocation(words)) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<RunningTrace> FindRunningTrace(int pid) {
  const std::string task = LivingTask(pid);
  std::ifstream maps(absl::StrCat(task, "/maps"));
  if (!maps) {
    const int error = errno;
    if (error == ENOENT) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
    return absl::NotFoundError(
        absl::StrCat("process ", pid, ": ", strerror(error), WhoMayLook(pid, error)));
  }
  const uint32_t pid_for_itself = PidForItself(pid);
  const std::string its_root = absl::StrCat(task, "/root");
  const bool has_own_root = HasRootOfItsOwn(task);
  std::set<std::string> seen;
  RunningTrace similar;
  bool library = false;
  for (std::string text; std::getline(maps, text);) {
    library |= text.find("/libmemtrace.so") != text.npos;
    MapLine line;
    if (!ParseMapLine(text, &line) || line.permissions != "rw-s" || !line.name.starts_with('/'))
      continue;
    const std::string path(line.name);
    if (!seen.insert(path).second) continue;
    for (const std::string& root : {std::string(), its_root}) {
      const RunningTrace trace = {absl::StrCat(root, path),
                                  root.empty() && !has_own_root ? "" : its_root};
      if (!IsTraceOf(pid_for_itself, trace.path)) continue;
      if (IsFileOfLine(trace.path, line)) return trace;
      if (similar.path.empty()) similar = trace;
    }
  }
  // Of stacked file systems the kernel has another number there.
  if (!similar.path.empty()) return similar;
  if (library) {
    return absl::NotFoundError(absl::StrCat(
        "process ", pid, " records to no file that can be opened here, or not any more"));
  }
  return absl::NotFoundError(
      absl::StrCat("process ", pid, " is not traced: start it with memtrace run"));
}

// What `memtrace run` has packed is in another file.
bool HasAllocations(const RunningTrace& trace) {
  for (const std::string& path : {trace.path, absl::StrCat(trace.path, kPackedSuffix)}) {
    const auto reader = TraceReader::Open(path);
    if (reader.ok() && HasAllocation(**reader)) return true;
  }
  return false;
}

}  // namespace memtrace::report
