#include "report/pressure/oom_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace memtrace::report::pressure {
namespace {

// The log's line follows the signal, written by another processor.
constexpr auto kLogDelay = std::chrono::milliseconds(20);

std::string Rise(uint64_t from, uint64_t to) { return absl::StrCat("from ", from, " to ", to); }

}  // namespace

std::string OomWatch::KernelLogPath() {
  constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO of linux/proc_ns.h
  struct stat info;
  const bool first =
      stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == kFirstPidNamespace;
  return first ? "/dev/kmsg" : "";
}

OomWatch::OomWatch(KernelFiles files, uint32_t pid, const std::string& log_path)
    : files_(std::move(files)), pid_(pid), system_before_(SystemKills()) {
  if (!log_path.empty()) {
    log_ = UniqueFd(open(log_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (log_.ok()) lseek(log_.get(), 0, SEEK_END);
  }
  const auto cgroup = FindMemoryCgroup(files_, pid);
  Follow(cgroup.ok() ? std::optional(*cgroup) : std::nullopt);
}

void OomWatch::Follow(const std::optional<MemoryCgroup>& cgroup) {
  if (!cgroup.has_value() || cgroup == cgroup_) return;
  cgroup_ = cgroup;
  group_before_ = OomKills(files_, *cgroup_);
  limit_bytes_ = ReadCgroup(files_, *cgroup_).limit_bytes;
}

std::optional<uint64_t> OomWatch::SystemKills() const {
  const auto vmstat = files_.Read("/proc/vmstat");
  return vmstat.ok() ? NumberAfter(*vmstat, "oom_kill") : std::nullopt;
}

uint64_t OomWatch::kills_in_group() const {
  if (!cgroup_.has_value() || !group_before_.has_value()) return 0;
  const uint64_t now = OomKills(files_, *cgroup_).value_or(*group_before_);
  return now > *group_before_ ? now - *group_before_ : 0;
}

// "... Killed process 4711 (name) total-vm:..." of each process that was.
void OomWatch::ReadLog() {
  constexpr std::string_view kMark = "Killed process ";
  char buffer[8192];  // a record of /dev/kmsg is shorter
  while (log_.ok()) {
    const ssize_t n = read(log_.get(), buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: some were overwritten
    if (n <= 0) return;
    tail_.append(buffer, static_cast<size_t>(n));
    for (size_t at = 0; (at = tail_.find(kMark, at)) != tail_.npos;) {
      at += kMark.size();
      size_t end = at;
      while (end < tail_.size() && absl::ascii_isdigit(static_cast<unsigned char>(tail_[end]))) {
        ++end;
      }
      uint32_t pid = 0;
      if (absl::SimpleAtoi(tail_.substr(at, end - at), &pid)) killed_.insert(pid);
    }
    tail_.erase(0, tail_.rfind('\n') == tail_.npos ? 0 : tail_.rfind('\n') + 1);
  }
}

Kill OomWatch::Judge() {
  Kill kill;
  if (cgroup_.has_value()) kill.cgroup = cgroup_->path;
  kill.limit_bytes = limit_bytes_.value_or(0);
  const auto group = cgroup_.has_value() ? OomKills(files_, *cgroup_) : std::nullopt;
  const auto system = SystemKills();
  const bool group_known = group.has_value() && group_before_.has_value();
  const bool system_known = system.has_value() && system_before_.has_value();
  const uint64_t group_from = group_before_.value_or(0), group_to = group.value_or(0);
  const uint64_t system_from = system_before_.value_or(0), system_to = system.value_or(0);
  const bool group_rose = group_known && group_to > group_from;
  const bool system_rose = system_known && system_to > system_from;

  const auto say = [&kill](format::KillVerdict verdict, std::string why) {
    kill.verdict = verdict;
    kill.why = std::move(why);
    return kill;
  };
  ReadLog();
  if (!killed_.contains(pid_) && (group_rose || system_rose)) {
    std::this_thread::sleep_for(kLogDelay);
    ReadLog();
  }
  if (killed_.contains(pid_)) {
    return say(format::KillVerdict::kOomKiller,
               absl::StrCat("The kernel log says that the OOM killer killed process ", pid_, "."));
  }
  if (group_rose) {
    const std::string rise = absl::StrCat("oom_kill of the control group ", cgroup_->path,
                                          " went up ", Rise(group_from, group_to));
    if (!killed_.empty()) {
      return say(format::KillVerdict::kNotOomKiller,
                 absl::StrCat(rise, ", but the kernel log names other processes than ", pid_, "."));
    }
    return say(format::KillVerdict::kOomKiller, absl::StrCat(rise, "."));
  }
  if (system_rose && !killed_.empty()) {
    return say(
        format::KillVerdict::kNotOomKiller,
        "The kernel log names other processes that the OOM killer killed, and not this one.");
  }
  if (system_rose) {
    return say(format::KillVerdict::kNotKnown,
               absl::StrCat("oom_kill of /proc/vmstat went up ", Rise(system_from, system_to),
                            group_known ? ", that of the program's control group did not"
                                        : ", which counts every process of this machine", "."));
  }
  if (system_known || group_known) {
    return say(format::KillVerdict::kNotOomKiller, "No count of OOM kills went up.");
  }
  return say(format::KillVerdict::kNotKnown, "No count of OOM kills can be read here.");
}

}  // namespace memtrace::report::pressure
