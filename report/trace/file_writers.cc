#include "report/trace/file_writers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "report/base/map_line.h"
#include "report/base/proc_stat.h"

namespace memtrace::report {

Writers WritersOf(int fd) {
  if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return Writers::kNone;
  }
  return errno == EAGAIN ? Writers::kSome : Writers::kNotKnown;
}

bool IsMappedBy(uint32_t pid, const std::string& path) {
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return false;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    MapLine map;
    if (ParseMapLine(line, &map) && map.permissions == "rw-s" && map.name == resolved) return true;
  }
  return false;
}

bool MayBeAlive(uint32_t pid, uint64_t pid_namespace) {
  struct stat info;
  if (pid_namespace != 0 && stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != pid_namespace)
    return true;
  const std::string directory = "/proc/" + std::to_string(pid);
  if (stat(directory.c_str(), &info) != 0) return errno != ENOENT;
  const std::optional<std::string> stat_line = ReadProcStat(static_cast<pid_t>(pid));
  const bool has_ended = stat_line.has_value() && IsZombieStat(*stat_line);
  // The first thread of a process may have ended alone. The links of a directory are what
  // it holds and two more.
  return !has_ended || (stat((directory + "/task").c_str(), &info) == 0 && info.st_nlink > 3);
}

}  // namespace memtrace::report
