#include "report/command/process_status.h"

#include <dirent.h>

#include <fstream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/pressure/freezer.h"
#include "report/pressure/kernel_files.h"

namespace memtrace::report {

std::string StatusField(const std::string& task, absl::string_view name) {
  std::ifstream status(absl::StrCat(task, "/status"));
  for (std::string line; std::getline(status, line);) {
    absl::string_view value = line;
    if (absl::ConsumePrefix(&value, name)) return std::string(absl::StripAsciiWhitespace(value));
  }
  return "";
}

std::vector<ThreadTask> ThreadsOf(int pid) {
  std::vector<ThreadTask> threads;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  if (directory == nullptr) return threads;
  while (const dirent* entry = readdir(directory.get())) {
    int id = 0;
    if (!absl::SimpleAtoi(entry->d_name, &id)) continue;
    threads.push_back({id, absl::StrCat(tasks, "/", id)});
  }
  return threads;
}

bool ThreadHasEnded(const std::string& task) {
  const std::string state = StatusField(task, "State:");
  return state.empty() || state.front() == 'Z' || state.front() == 'X';
}

std::string LivingTask(int pid) {
  const std::string process = absl::StrCat("/proc/", pid);
  if (!ThreadHasEnded(process)) return process;
  for (const ThreadTask& thread : ThreadsOf(pid)) {
    if (!ThreadHasEnded(thread.task)) return thread.task;
  }
  return process;
}

std::string WhyItStands(int pid) {
  // First, for what is frozen as well would not go on when it is continued.
  if (pressure::IsFrozen(pressure::KernelFiles(), static_cast<uint32_t>(pid)))
    return "it is frozen by its control group (docker unpause, systemctl thaw)";
  bool any = false, by_debugger = false;
  for (const ThreadTask& thread : ThreadsOf(pid)) {
    if (ThreadHasEnded(thread.task)) continue;
    const std::string state = StatusField(thread.task, "State:");
    if (!state.starts_with('T') && !state.starts_with('t')) return "";
    any = true;
    by_debugger |= state.starts_with('t');
  }
  if (!any) return "";
  // Which a signal does not let go on.
  if (by_debugger) return "it is stopped by a debugger";
  return absl::StrCat("it is stopped (kill -CONT ", pid, " lets it go on)");
}

// "28475 1" of a process that is the first of a namespace within ours. Before Linux 4.1 there is no
// such field.
uint32_t PidForItself(int pid) {
  const std::string pids = StatusField(absl::StrCat("/proc/", pid), "NSpid:");
  uint32_t innermost = 0;
  const bool told = absl::SimpleAtoi(pids.substr(pids.find_last_of(" \t") + 1), &innermost);
  return told ? innermost : static_cast<uint32_t>(pid);
}

}  // namespace memtrace::report
