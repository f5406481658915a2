#include "report/command/leak_signal.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "format/leak_signal.h"
#include "report/command/process_status.h"

namespace memtrace::report {
namespace {

bool IsInMask(const std::string& task, absl::string_view name, int signal) {
  uint64_t signals = 0;
  return absl::SimpleHexAtoi(StatusField(task, name), &signals) &&
         (signals >> (signal - 1) & 1) != 0;
}

// What an older library has not told. Nothing is known of a process that has written a title over
// its environment.
uint64_t NumberInEnvironment(int pid) {
  std::ifstream environment(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
  uint64_t number = 0;
  for (std::string entry; std::getline(environment, entry, '\0');) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    if (pair.first == "MEMTRACE_LEAK_SIGNAL" && !absl::SimpleAtoi(pair.second, &number)) number = 0;
  }
  return number;
}

int NumberOf(int pid, const format::StatusArea& area) {
  constexpr size_t kTold = offsetof(format::StatusArea, leak_signal) + sizeof(area.leak_signal);
  const uint64_t number = area.bytes >= kTold ? area.leak_signal : NumberInEnvironment(pid);
  return number <= 64 ? static_cast<int>(number) : 0;
}

// The call of the kernel that a thread waits in.
struct WaitingCall {
  long number = -1;    // -1: in none, or it may not be looked at
  uint64_t value = 0;  // of format/leak_signal.h
};

WaitingCall CallOf(const std::string& task) {
  std::ifstream file(absl::StrCat(task, "/syscall"));
  WaitingCall call;
  if (!(file >> call.number)) return {};
  if (call.number == SYS_restart_syscall) return call;  // does not say what goes on
  format::CallPlace place;
  const auto take = [&file](uint64_t* to) {
    std::string word;
    return file >> word && absl::SimpleHexAtoi(word, to);
  };
  bool whole = true;
  for (uint64_t& argument : place.arguments) whole = whole && take(&argument);
  if (whole && take(&place.stack_pointer) && take(&place.pc)) {
    call.value = format::LeakSignalValue(call.number, place);
  }
  return call;
}

// With the call; without, where a sandbox of ours knows no such signal.
bool Send(int pid, int thread, int number, const WaitingCall& call) {
  siginfo_t info = {};
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(static_cast<uintptr_t>(call.value));
  return syscall(SYS_rt_tgsigqueueinfo, pid, thread, number, &info) == 0 ||
         syscall(SYS_tgkill, pid, thread, number) == 0;
}

}  // namespace

LeakSignal SendLeakSignal(int pid, const format::StatusArea& area) {
  LeakSignal signal{.number = NumberOf(pid, area)};
  if (signal.number == 0) return signal;
  signal.has_handler = IsInMask(absl::StrCat("/proc/", pid), "SigCgt:", signal.number);
  if (!signal.has_handler) return signal;
  for (const ThreadTask& thread : ThreadsOf(pid)) {
    if (ThreadHasEnded(thread.task) || IsInMask(thread.task, "SigBlk:", signal.number)) continue;
    // While it waits for signals its mask does not show which.
    const WaitingCall call = CallOf(thread.task);
    if (call.number == SYS_rt_sigtimedwait) continue;
    if (!Send(pid, thread.id, signal.number, call)) continue;
    signal.sent = true;
    break;
  }
  return signal;
}

}  // namespace memtrace::report
