#include "report/run/proc_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {

std::optional<std::string> StatFromState(pid_t pid) {
  const UniqueFd fd(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t n = fd.ok() ? read(fd.get(), text, sizeof(text)) : -1;
  if (n <= 0) return std::nullopt;
  std::string line(text, static_cast<size_t>(n));
  const size_t name_end = line.rfind(") ");
  if (name_end == line.npos) return std::nullopt;
  return line.substr(name_end + 2);
}

}  // namespace memtrace::report
