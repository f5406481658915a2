#include "report/valgrind/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/whole_io.h"
#include "report/base/unique_fd.h"
#include "report/valgrind/driver_options.h"

namespace memtrace::report::valgrind {
namespace {

absl::StatusOr<std::string> NameFor(const std::string& name, uint32_t pid) {
  return ExpandLogName(name, pid, 1, [](const std::string& variable) -> std::optional<std::string> {
    const char* value = getenv(variable.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

absl::Status CannotWrite(absl::string_view name) {
  return absl::UnavailableError(absl::StrCat("cannot write ", name, ": ", strerror(errno)));
}

absl::Status WriteAllTo(int fd, absl::string_view text, absl::string_view name) {
  if (base::WriteAll(fd, {text.data(), text.size()})) return absl::OkStatus();
  return CannotWrite(name);
}

}  // namespace

ReportFile::ReportFile(std::string name, std::optional<int> fd) : name_(std::move(name)), fd_(fd) {}

absl::Status ReportFile::Begin() {
  const absl::StatusOr<std::string> path = NameFor(name_, 1);
  if (!path.ok()) return path.status();
  if (name_.empty() || *path != NameFor(name_, 2).value_or("")) return absl::OkStatus();
  struct stat st;
  // What may not be written is no report that Valgrind could replace, whoever owns the directory.
  if (stat(path->c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(path->c_str(), W_OK) != 0) {
    const absl::Status status = CannotWrite(*path);
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; the file that is there stays: give it "
                                                       "write permission, or take another name"));
  }
  // An empty file would read as a report without errors, and so it is better that there is none.
  if (lstat(path->c_str(), &st) == 0 && S_ISREG(st.st_mode) && unlink(path->c_str()) == 0) {
    return absl::OkStatus();
  }
  // A link, or a file in a directory that belongs to somebody else.
  if (stat(path->c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return absl::OkStatus();
  const UniqueFd emptied(open(path->c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  return emptied.ok() ? absl::OkStatus() : CannotWrite(*path);
}

absl::Status ReportFile::Write(uint32_t pid, absl::string_view text) {
  if (text.empty() && name_.empty()) return absl::OkStatus();
  if (name_.empty()) return WriteAllTo(fd_.value_or(STDERR_FILENO), text, "the log");
  const absl::StatusOr<std::string> path = NameFor(name_, pid);
  if (!path.ok()) return path.status();
  const int how = written_.insert(*path).second ? O_TRUNC : O_APPEND;
  const UniqueFd file(open(path->c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666));
  return file.ok() ? WriteAllTo(file.get(), text, *path) : CannotWrite(*path);
}

}  // namespace memtrace::report::valgrind
