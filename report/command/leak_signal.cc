#include "report/command/leak_signal.h"

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

// While it waits its mask does not show what it waits for.
bool WaitsForSignals(const std::string& task) {
  std::ifstream call(absl::StrCat(task, "/syscall"));
  long number = -1;
  return call >> number && number == SYS_rt_sigtimedwait;
}

}  // namespace

LeakSignal SendLeakSignal(int pid, const format::StatusArea& area) {
  LeakSignal signal{.number = NumberOf(pid, area)};
  if (signal.number == 0) return signal;
  signal.has_handler = IsInMask(absl::StrCat("/proc/", pid), "SigCgt:", signal.number);
  if (!signal.has_handler) return signal;
  for (const ThreadTask& thread : ThreadsOf(pid)) {
    if (ThreadHasEnded(thread.task) || IsInMask(thread.task, "SigBlk:", signal.number) ||
        WaitsForSignals(thread.task)) {
      continue;
    }
    if (syscall(SYS_tgkill, pid, thread.id, signal.number) != 0) continue;
    signal.sent = true;
    break;
  }
  return signal;
}

}  // namespace memtrace::report
