#include "report/run/process_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "report/base/clock.h"
#include "report/base/proc_stat.h"
#include "report/trace/file_writers.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kStartSlackNs = 2 * kSecond;  // clock steps, and ticks of 10 ms

// CLOCK_REALTIME of the start of a process, from field 22 of its stat.
std::optional<uint64_t> StartRealtimeNs(uint32_t pid) {
  const std::optional<std::string> stat = ReadProcStat(static_cast<pid_t>(pid));
  uint64_t ticks = 0;
  if (!stat.has_value() || !absl::SimpleAtoi(ProcStatField(*stat, 22), &ticks)) {
    return std::nullopt;
  }
  const uint64_t since_boot =
      ticks * (kSecond / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  return NowNs(CLOCK_REALTIME) - NowNs(CLOCK_BOOTTIME) + since_boot;
}

std::optional<uint64_t> BirthNs(int fd) {
  struct statx info;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &info) != 0 || !(info.stx_mask & STATX_BTIME)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(info.stx_btime.tv_sec) * kSecond + info.stx_btime.tv_nsec;
}

}  // namespace

ProcessWatch::ProcessWatch(uint32_t pid, int raw_fd)
    : pid_(pid), raw_fd_(raw_fd),
      pidfd_(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0))) {
  if (!pidfd_.ok() && errno == ESRCH) {
    gone_ = true;
    return;
  }
  const auto start = StartRealtimeNs(pid);
  const auto birth = BirthNs(raw_fd);
  gone_ = start && birth && *start > *birth + kStartSlackNs;
}

bool ProcessWatch::PidEnded() const {
  if (gone_) return true;
  if (!pidfd_.ok()) return kill(static_cast<pid_t>(pid_), 0) != 0 && errno == ESRCH;
  pollfd poll_fd = {pidfd_.get(), POLLIN, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

void ProcessWatch::SetPidNamespace(uint64_t inode) {
  struct stat info;
  pid_namespace_ = inode;
  foreign_ = inode != 0 && stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != inode;
}

bool ProcessWatch::Ended() const {
  if (foreign_) return WritersOf(raw_fd_) == Writers::kNone;
  return PidEnded() && WritersOf(raw_fd_) != Writers::kSome;
}

}  // namespace memtrace::report
