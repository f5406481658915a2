// /proc/PID/stat: what the kernel says of a process in one line, "1 (sh) S 4242 ...".
//
// Fields are counted from 1, as proc(5) does. Field 2, the name, may hold anything, also ") Z ": so
// the others are found from its last parenthesis on.

#ifndef MEMTRACE_REPORT_BASE_PROC_STAT_H_
#define MEMTRACE_REPORT_BASE_PROC_STAT_H_

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {

// Nothing: the process is gone, or /proc is not there.
inline std::optional<std::string> ReadProcStat(pid_t pid) {
  const UniqueFd fd(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t n = fd.ok() ? read(fd.get(), text, sizeof(text)) : -1;
  if (n <= 0) return std::nullopt;
  return std::string(text, static_cast<size_t>(n));
}

// Field `number`, from 3 on, of such a line; empty where it has not as many.
inline absl::string_view ProcStatField(absl::string_view line, int number) {
  const size_t name_end = line.rfind(") ");
  if (name_end == absl::string_view::npos) return "";
  line.remove_prefix(name_end + 2);
  for (int field = 3; field < number; ++field) {
    const size_t space = line.find(' ');
    if (space == absl::string_view::npos) return "";
    line.remove_prefix(space + 1);
  }
  return line.substr(0, line.find_first_of(" \n"));
}

// It has ended, and nobody has waited for it.
inline bool IsZombieStat(absl::string_view line) { return ProcStatField(line, 3) == "Z"; }

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_PROC_STAT_H_
