#include "report/gate/baseline_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/base/errno_status.h"
#include "report/base/output_file.h"
#include "report/base/unique_fd.h"
#include "report/render/output.h"
#include "report/suppress/text_file.h"
#include "report/words/escape.h"

namespace memtrace::report::gate {
namespace {

// Not of the baseline itself, which a new file takes the place of, nor of its directory, nor under
// a name that others give to locks of theirs: who runs us may hold those (`flock b.lock memtrace
// check ...`), and we would wait for ever.
class BaselineLock {
 public:
  // Waits until nobody else has it, which is told. Where the file system knows no locks nobody can
  // have one: it goes on without.
  static absl::StatusOr<BaselineLock> Take(const std::string& baseline) {
    struct stat place;
    if (stat(baseline.c_str(), &place) == 0 && !S_ISREG(place.st_mode)) {
      return BaselineLock("", UniqueFd());  // a device: nothing takes its place
    }
    const size_t name = baseline.rfind('/') + 1;  // npos + 1 is 0
    const std::string directory = baseline.substr(0, name);
    const std::string path = absl::StrCat(directory, ".", baseline.substr(name), ".memtrace-lock");
    bool told = false;
    while (true) {
      UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
      if (!file.ok() && errno == EACCES) {  // of another user, who may be updating just now
        file = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (!file.ok()) errno = EACCES;
      }
      if (!file.ok()) return CannotBeMade(path, directory, errno);
      int error = LockNow(file.get(), LOCK_EX | LOCK_NB);
      if (error == EWOULDBLOCK) {
        if (!told) {
          std::fprintf(stderr, "memtrace: waiting for another update of %s to let go of %s\n",
                       words::EscapeControls(baseline).c_str(),
                       words::EscapeControls(path).c_str());
        }
        told = true;
        error = LockNow(file.get(), LOCK_EX);
      }
      if (error != 0 && error != ENOLCK && error != EOPNOTSUPP && error != ENOSYS) {
        return ErrnoStatus("cannot lock", path, error);
      }
      // Who had it before has removed the file: others lock a new one.
      struct stat locked, there;
      if (fstat(file.get(), &locked) == 0 && lstat(path.c_str(), &there) == 0 &&
          locked.st_dev == there.st_dev && locked.st_ino == there.st_ino) {
        return BaselineLock(path, std::move(file));
      }
    }
  }
  BaselineLock(BaselineLock&&) = default;
  BaselineLock& operator=(BaselineLock&&) = delete;
  ~BaselineLock() {
    struct stat file;
    // A file that has something in it is somebody's own.
    if (file_.ok() && fstat(file_.get(), &file) == 0 && S_ISREG(file.st_mode) &&
        file.st_size == 0) {
      unlink(path_.c_str());
    }
  }

 private:
  BaselineLock(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  // Returns errno, or 0.
  static int LockNow(int file, int how) {
    while (flock(file, how) != 0) {
      if (errno != EINTR) return errno;
    }
    return 0;
  }
  static absl::Status CannotBeMade(const std::string& path, const std::string& directory,
                                   int error) {
    const absl::Status status = ErrnoStatus("cannot make the lock", path, error);
    const bool writable = access(directory.empty() ? "." : directory.c_str(), W_OK | X_OK) == 0;
    struct stat there;
    const bool is_there = lstat(path.c_str(), &there) == 0;
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(),
                     !writable ? "; the baseline is replaced by a new file, and so this user has to "
                                 "have write permission for its directory"
                     : error == ENAMETOOLONG ? "; give the baseline a shorter name"
                     : error == EACCES ? "; it is another user's, who may be updating it just now"
                     : is_there ? "; nothing else may have this name: remove it"
                                : "; its directory takes no new file, and the baseline would be "
                                  "one"));
  }

  std::string path_;
  UniqueFd file_;  // closed, and so unlocked, when the name is gone
};

}  // namespace

absl::StatusOr<Baseline> ReadBaseline(const std::string& path, bool may_be_absent) {
  const auto text = suppress::ReadTextFile(path);
  if (!text.ok() && !(may_be_absent && absl::IsNotFound(text.status()))) return text.status();
  return Baseline::Parse(text.ok() ? *text : "", path);
}

absl::StatusOr<Baseline> UpdateBaselineFile(
    const std::string& path, const std::function<std::string(const Baseline& now)>& update) {
  const auto place = BehindLinks(path);  // whatever link it is called by
  if (!place.ok()) return place.status();
  const auto lock = BaselineLock::Take(*place);
  if (!lock.ok()) return lock.status();
  const auto now = ReadBaseline(path, /*may_be_absent=*/true);
  if (!now.ok()) return now.status();
  const std::string text = update(*now);
  auto out = render::Output::Open(path);
  if (!out.ok()) return out.status();
  out->Write(text);
  if (const absl::Status status = out->Commit(); !status.ok()) return status;
  return Baseline::Parse(text, path);
}

}  // namespace memtrace::report::gate
