#include "report/run/program_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace memtrace::report {
namespace {

// 0, or the errno that execve() would fail with before it reads the file.
int CheckExecutable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  // Effective ids, as execve() uses; for root any x bit is enough.
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

FoundProgram FindProgram(absl::string_view name, const char* search_path) {
  if (name.empty()) return {"", ENOENT};
  if (name.find('/') != name.npos) {
    const std::string path(name);
    const int error = CheckExecutable(path);
    return error == 0 ? FoundProgram{path, 0} : FoundProgram{"", error};
  }
  absl::string_view rest = search_path != nullptr ? search_path : "/bin:/usr/bin";
  int error = ENOENT;
  while (true) {
    const size_t colon = rest.find(':');
    const absl::string_view directory = rest.substr(0, colon);
    // An empty element is the working directory. "./" keeps a file named "-x" or so a path.
    const std::string path = absl::StrCat(directory.empty() ? "." : directory, "/", name);
    const int this_error = CheckExecutable(path);
    if (this_error == 0) return {path, 0};
    if (this_error == EACCES) error = EACCES;  // execvp() goes on, and remembers
    if (colon == rest.npos) return {"", error};
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace memtrace::report
