#include "report/base/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "report/base/errno_status.h"

namespace memtrace::report {
namespace {

constexpr int kMostLeft = 100;  // files of others that have the name
constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP};

// The file that a signal's handler removes. g_has_name is set only when the name is whole.
char g_name[4096];
std::atomic<bool> g_has_name{false};

void RemoveAndEnd(int signal) {
  if (g_has_name.load()) unlink(g_name);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void RemoveWhenEnded(const std::string& name) {
  if (name.size() >= sizeof(g_name)) return;
  g_has_name.store(false);
  memcpy(g_name, name.c_str(), name.size() + 1);
  g_has_name.store(true);
  for (const int signal : kEndings) {
    struct sigaction now;
    // Not where it is ignored, or somebody else's.
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      ::signal(signal, RemoveAndEnd);
    }
  }
}

void KeepWhenEnded() {
  g_has_name.store(false);
  for (const int signal : kEndings) {
    struct sigaction now;
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == RemoveAndEnd) {
      ::signal(signal, SIG_DFL);
    }
  }
}

// The path that would be made by writing to `path`, which may be a link to a file that is not
// there. If a directory is missing on the way, that shows when the file is made.
std::string WhereItLeads(std::string path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  char target[PATH_MAX];
  for (int i = 0; i < kMostLinks; ++i) {
    const ssize_t n = readlink(path.c_str(), target, sizeof(target));
    if (n <= 0 || n == static_cast<ssize_t>(sizeof(target))) break;
    const std::string to(target, static_cast<size_t>(n));
    const size_t slash = path.rfind('/');
    path = to.front() == '/' || slash == std::string::npos ? to : path.substr(0, slash + 1) + to;
  }
  return path;
}

}  // namespace

// /dev/stdout is a link, and root may replace it. What it leads to is replaced only where one may
// also write to it: of links of others in /tmp the kernel knows (protected_symlinks).
absl::StatusOr<std::string> BehindLinks(const std::string& path) {
  struct stat link;
  if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return path;
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    if (errno != ENOENT) return ErrnoStatus("cannot write", path, errno);
    return WhereItLeads(path);  // to nothing yet
  }
  close(fd);
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return ErrnoStatus("cannot write", path, errno);
  return resolved;
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                               mode_t mode) {
  struct stat st;
  const bool exists = stat(path.c_str(), &st) == 0;
  if (exists && !S_ISREG(st.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": it exists and is not a regular file"));
  }
  auto place = BehindLinks(path);
  if (!place.ok()) return place.status();
  std::string temporary;
  int fd = -1;
  // An earlier process with the same pid may have been killed and have left its file: in a
  // container pids come again.
  for (int number = 0; fd < 0; ++number) {
    temporary = absl::StrCat(*place, ".", getpid(), ".", number, ".tmp");
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && (errno != EEXIST || number == kMostLeft)) {
      return ErrnoStatus("cannot write", path, errno);
    }
  }
  RemoveWhenEnded(temporary);
  auto file = std::unique_ptr<OutputFile>(
      new OutputFile(path, *std::move(place), std::move(temporary), fd));
  // A file that is replaced keeps its mode, unless the new one is nobody else's business.
  if (exists && (mode & 077) != 0) file->mode_ = st.st_mode & 0777;
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!committed_) unlink(temporary_.c_str());
  KeepWhenEnded();
}

absl::Status OutputFile::Commit() {
  // Not before: it may be written by its name meanwhile.
  if (mode_.has_value()) {
    [[maybe_unused]] const int changed = fchmod(fd_, *mode_);
  }
  // Errors of delayed writes come out here.
  const int closed = close(fd_);
  fd_ = -1;
  if (closed != 0) return ErrnoStatus("cannot write", path_, errno);
  if (rename(temporary_.c_str(), place_.c_str()) != 0) {
    return ErrnoStatus("cannot write", path_, errno);
  }
  committed_ = true;
  return absl::OkStatus();
}

}  // namespace memtrace::report
