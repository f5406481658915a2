#include "report/run/reader_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "report/run/spool_directory.h"

namespace memtrace::report {
namespace {

enum Byte : off_t { kRead = 0, kPromised = 1 };

struct flock LockOf(Byte byte, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool SetLock(int fd, Byte byte, short type) {
  struct flock lock = LockOf(byte, type);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool Share(int fd, Byte byte) { return SetLock(fd, byte, F_RDLCK); }

bool IsShared(int fd, Byte byte) {
  struct flock lock = LockOf(byte, F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

void PromiseToLookForReaders(int packed_fd) { Share(packed_fd, kPromised); }

bool HasReaders(int packed_fd) { return IsShared(packed_fd, kRead); }

bool LockForReading(int packed_fd) {
  return IsShared(packed_fd, kPromised) && Share(packed_fd, kRead);
}

void UnlockForReading(int packed_fd) { SetLock(packed_fd, kRead, F_UNLCK); }

RawTraceLock::RawTraceLock(const std::string& trace)
    : packed_(open(absl::StrCat(trace, kPackedSuffix).c_str(),
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  if (packed_.ok() && !LockForReading(packed_.get())) packed_.Close();
}

void RawTraceLock::ReadingIsOver() {
  if (packed_.ok()) UnlockForReading(packed_.get());
  packed_.Close();
}

}  // namespace memtrace::report
