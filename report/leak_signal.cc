#include "report/leak_signal.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace memtrace::report {
namespace {

// The value of the field `name` ("SigCgt:" and the like) in a status file of /proc;
// empty: it is not there.
std::string StatusField(const std::string& status_file, absl::string_view name) {
  std::ifstream status(status_file);
  for (std::string line; std::getline(status, line);) {
    absl::string_view value = line;
    if (absl::ConsumePrefix(&value, name)) return std::string(absl::StripAsciiWhitespace(value));
  }
  return "";
}

bool IsInMask(const std::string& status_file, absl::string_view name, int signal) {
  uint64_t signals = 0;
  return absl::SimpleHexAtoi(StatusField(status_file, name), &signals) &&
         (signals >> (signal - 1) & 1) != 0;
}

// The MEMTRACE_LEAK_SIGNAL that the process was started with, if it has a handler for it: a signal
// without one would end most programs. 0: none.
int NumberOf(int pid) {
  std::ifstream environment(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
  int number = 0;
  for (std::string entry; std::getline(environment, entry, '\0');) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    if (pair.first == "MEMTRACE_LEAK_SIGNAL" && !absl::SimpleAtoi(pair.second, &number)) number = 0;
  }
  const bool caught = number > 0 && number <= 64 &&
                      IsInMask(absl::StrCat("/proc/", pid, "/status"), "SigCgt:", number);
  return caught ? number : 0;
}

std::vector<int> ThreadsOf(int pid) {
  std::vector<int> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      opendir(absl::StrCat("/proc/", pid, "/task").c_str()), closedir);
  if (directory == nullptr) return threads;
  while (const dirent* entry = readdir(directory.get())) {
    if (int thread; absl::SimpleAtoi(entry->d_name, &thread)) threads.push_back(thread);
  }
  return threads;
}

// Whether the thread has ended. The first thread of a process may end while the process goes on.
bool HasEnded(const std::string& task) {
  const std::string state = StatusField(absl::StrCat(task, "/status"), "State:");
  return state.empty() || state.front() == 'Z' || state.front() == 'X';
}

// While it waits its mask does not show what it waits for.
bool WaitsForSignals(const std::string& task) {
  std::ifstream call(absl::StrCat(task, "/syscall"));
  long number = -1;
  return call >> number && number == SYS_rt_sigtimedwait;
}

}  // namespace

LeakSignal SendLeakSignal(int pid) {
  LeakSignal signal{.number = NumberOf(pid)};
  if (signal.number == 0) return signal;
  for (const int thread : ThreadsOf(pid)) {
    const std::string task = absl::StrCat("/proc/", pid, "/task/", thread);
    if (HasEnded(task) || IsInMask(absl::StrCat(task, "/status"), "SigBlk:", signal.number) ||
        WaitsForSignals(task)) {
      continue;
    }
    if (syscall(SYS_tgkill, pid, thread, signal.number) != 0) continue;
    signal.sent = true;
    break;
  }
  return signal;
}

}  // namespace memtrace::report
