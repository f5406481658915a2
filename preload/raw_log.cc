#include "preload/raw_log.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>

#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr int kStandardError = 2;

// Past RLIMIT_FSIZE the kernel would answer with SIGXFSZ.
bool IsFileAtItsLimit(size_t bytes) {
  const uint64_t limit = sys::FileSizeLimit();
  struct stat info;
  return limit != UINT64_MAX && !sys::Failed(sys::Fstat(kStandardError, &info)) &&
         S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) + bytes > limit;
}

bool TakesWithoutWaiting() {
  pollfd standard_error = {kStandardError, POLLOUT, 0};
  const timespec now = {};
  return sys::Call(SYS_ppoll, reinterpret_cast<long>(&standard_error), 1,
                   reinterpret_cast<long>(&now), 0, 0) == 1 &&
         (standard_error.revents & POLLOUT) != 0 && (standard_error.revents & POLLERR) == 0;
}

constexpr SignalsBlocked::Mask kPipe = SignalsBlocked::Mask{1} << (SIGPIPE - 1);

bool IsPipeSignalPending() {
  SignalsBlocked::Mask pending = 0;
  sys::Call(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof(pending));
  return (pending & kPipe) != 0;
}

void TakePipeSignal() {
  const timespec now = {};
  sys::Call(SYS_rt_sigtimedwait, reinterpret_cast<long>(&kPipe), 0, reinterpret_cast<long>(&now),
            sizeof(kPipe));
}

}  // namespace

void WriteToStandardError(std::string_view line) {
  const SignalsBlocked calls;  // SIGPIPE of the write stays with us, and SIGTTOU stops nobody
  if (!calls || IsFileAtItsLimit(line.size()) || !TakesWithoutWaiting()) return;
  const bool is_the_programs = IsPipeSignalPending();
  // A socket whose other end is gone looks as if it took it.
  if (sys::Write(kStandardError, line.data(), line.size()) == -EPIPE && !is_the_programs)
    TakePipeSignal();
}

}  // namespace memtrace
