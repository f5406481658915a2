#include "preload/leak_scan/partial_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/leak_scan/call_again.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// All signals are blocked meanwhile: a tenth of a second.
constexpr size_t kMostRandomBytes = 16 << 20;

struct Transfer {
  enum Kind { kNone, kSend, kReceive, kPipe, kRandom } kind = kNone;
  const iovec* parts = nullptr;
  size_t part_count = 0;
  size_t bytes = 0;  // in all
  int flags = 0;
  struct stat file = {};  // which it was, for its number may be given to another one meanwhile
  iovec buffer = {};      // the only part of a call that has no parts

  void SetBuffer(uint64_t address, size_t size) {
    buffer = {reinterpret_cast<void*>(address), size};
    parts = &buffer;
    part_count = 1;
  }
};

bool IsRandomDevice(const struct stat& info) {
  constexpr unsigned kMemoryDevices = 1, kUrandom = 9;
  return S_ISCHR(info.st_mode) && major(info.st_rdev) == kMemoryDevices &&
         minor(info.st_rdev) == kUrandom;
}

// TCP, and AF_UNIX: others of this type have messages.
bool IsStreamSocket(const struct stat& info, long fd) {
  if (!S_ISSOCK(info.st_mode) || SocketOption(fd, SO_TYPE) != SOCK_STREAM) return false;
  const int domain = SocketOption(fd, SO_DOMAIN);
  if (domain == AF_UNIX) return true;
  return (domain == AF_INET || domain == AF_INET6) && SocketOption(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

bool Blocks(long fd) {
  const long flags = sys::Call(SYS_fcntl, fd, F_GETFL);
  return !sys::Failed(flags) && (flags & O_NONBLOCK) == 0;
}

constexpr uint64_t kPlainSend = MSG_NOSIGNAL | MSG_MORE;
constexpr uint64_t kPlainReceive = MSG_WAITALL | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC;

bool IsPlainReceive(uint64_t flags) {
  return (flags & MSG_WAITALL) != 0 && (flags & ~kPlainReceive) == 0;
}

// False: it is none that an interruption alone makes short.
bool Find(long call, const CallArguments& arguments, Transfer* transfer) {
  Transfer& t = *transfer;
  if (call == SYS_getrandom) {
    constexpr uint64_t kInsecure = 4;  // GRND_INSECURE
    if ((arguments.at[2] & ~kInsecure) == 0 && arguments.at[1] <= kMostRandomBytes)
      t.kind = Transfer::kRandom;
    t.SetBuffer(arguments.at[0], arguments.at[1]);
  } else {
    const long fd = arguments.fd();
    if (sys::Failed(sys::Fstat(fd, &t.file)) || !Blocks(fd)) return false;
    const bool is_socket = IsStreamSocket(t.file, fd);
    switch (call) {
      case SYS_read:
        if (IsRandomDevice(t.file) && arguments.at[2] <= kMostRandomBytes)
          t.kind = Transfer::kRandom;
        t.SetBuffer(arguments.at[1], arguments.at[2]);
        break;
      case SYS_write: case SYS_writev:
        t.kind = is_socket                  ? Transfer::kSend
                 : S_ISFIFO(t.file.st_mode) ? Transfer::kPipe
                                            : Transfer::kNone;
        if (call == SYS_write) {
          t.SetBuffer(arguments.at[1], arguments.at[2]);
        } else {
          t.parts = arguments.pointer<const iovec>(1);
          t.part_count = arguments.at[2];
        }
        break;
      case SYS_sendto: case SYS_recvfrom:
        if (is_socket && call == SYS_sendto && (arguments.at[3] & ~kPlainSend) == 0)
          t.kind = Transfer::kSend;
        if (is_socket && call == SYS_recvfrom && IsPlainReceive(arguments.at[3]))
          t.kind = Transfer::kReceive;
        t.flags = static_cast<int>(arguments.at[3]);
        t.SetBuffer(arguments.at[1], arguments.at[2]);
        break;
      case SYS_sendmsg: case SYS_recvmsg: {
        // Control data that is sent goes with the first bytes. Control data that is received may
        // come with later bytes, and the room that there was for it is not known any more.
        const auto* const message = arguments.pointer<const msghdr>(1);
        const bool is_plain = call == SYS_sendmsg ? (arguments.at[2] & ~kPlainSend) == 0
                                                  : IsPlainReceive(arguments.at[2]) &&
                                                        message->msg_control == nullptr;
        if (is_socket && is_plain)
          t.kind = call == SYS_sendmsg ? Transfer::kSend : Transfer::kReceive;
        t.flags = static_cast<int>(arguments.at[2]);
        t.parts = message->msg_iov;
        t.part_count = message->msg_iovlen;
        break;
      }
      default:
        return false;
    }
  }
  if (t.kind == Transfer::kNone) return false;
  for (size_t i = 0; i < t.part_count; ++i)
    t.bytes += std::min(t.parts[i].iov_len, kMostTransferred);
  t.bytes = std::min(t.bytes, kMostTransferred);
  return true;
}

// The first bytes that are behind `done`, within one part.
iovec RestOf(const Transfer& transfer, size_t done) {
  const iovec* part = transfer.parts;
  size_t before = done;
  for (; before >= part->iov_len; ++part) before -= part->iov_len;
  return {static_cast<char*>(part->iov_base) + before,
          std::min(part->iov_len - before, transfer.bytes - done)};
}

// Whether `fd` still is the file of the transfer.
bool IsSameFile(const Transfer& transfer, long fd) {
  struct stat now;
  return !sys::Failed(sys::Fstat(fd, &now)) && now.st_dev == transfer.file.st_dev &&
         now.st_ino == transfer.file.st_ino;
}

// Moves what is behind `done`, as much as can be at once: nothing here waits, for
// all signals are blocked.
long Move(long call, const CallArguments& arguments, const Transfer& transfer, size_t done) {
  iovec rest = RestOf(transfer, done);
  const auto at = reinterpret_cast<long>(&rest);
  switch (transfer.kind) {
    case Transfer::kSend: case Transfer::kReceive: {
      msghdr message = {};
      message.msg_iov = &rest;
      message.msg_iovlen = 1;
      const int flags = (transfer.flags & ~MSG_WAITALL) | MSG_DONTWAIT | MSG_NOSIGNAL;
      return sys::Call(transfer.kind == Transfer::kSend ? SYS_sendmsg : SYS_recvmsg, arguments.fd(),
                       reinterpret_cast<long>(&message), flags);
    }
    case Transfer::kPipe: {
      constexpr int kNoWait = 8;  // RWF_NOWAIT, for pipes since Linux 6.4; before, it is refused
      return sys::Call(SYS_pwritev2, arguments.fd(), at, 1, -1, -1, kNoWait);
    }
    case Transfer::kRandom: {
      const auto to = reinterpret_cast<long>(rest.iov_base),
                 bytes = static_cast<long>(rest.iov_len);
      if (call == SYS_read) return sys::Call(SYS_read, arguments.fd(), to, bytes);
      return sys::Call(SYS_getrandom, to, bytes, static_cast<long>(arguments.at[2]));
    }
    case Transfer::kNone: break;
  }
  return 0;
}

// Ready for the rest, before the deadline. False: what would have ended the call is there.
bool WaitForMore(const void* context, const Transfer& transfer, long fd, uint64_t deadline_ns) {
  const bool receives = transfer.kind == Transfer::kReceive;
  const short events = receives ? POLLIN | POLLPRI : POLLOUT;
  short seen = 0;
  if (WaitForDescriptor(context, fd, events, deadline_ns, &seen) <= 0) return false;
  if ((seen & POLLNVAL) != 0) return false;
  // The call ends at urgent bytes. The error of a socket is for the next call, behind the
  // bytes that there are.
  if (receives) {
    if ((seen & POLLPRI) != 0) return false;
    int bytes = 0;
    if ((seen & POLLERR) == 0) return (seen & POLLIN) != 0;
    return !sys::Failed(sys::Call(SYS_ioctl, fd, FIONREAD, reinterpret_cast<long>(&bytes))) &&
           bytes > 0;
  }
  // A pipe without readers is one for the signal, which comes by the call alone.
  return transfer.kind == Transfer::kPipe || ((seen & POLLERR) == 0 && (seen & POLLOUT) != 0);
}

}  // namespace

void GoOnTransferring(void* context, long call) {
  const CallArguments arguments(context);
  Transfer transfer;
  if (!MayCall() || !Find(call, arguments, &transfer)) return;
  auto done = static_cast<size_t>(arch::CallResult(context));
  if (done >= transfer.bytes || !HasRoomToGoOn(context)) return;
  const bool waits = transfer.kind != Transfer::kRandom;
  const int option = transfer.kind == Transfer::kReceive ? SO_RCVTIMEO : SO_SNDTIMEO;
  const uint64_t time_ns = waits ? SocketTimeNs(arguments.fd(), option) : 0;
  const uint64_t deadline = time_ns != 0 ? NowNs(CLOCK_MONOTONIC) + time_ns : UINT64_MAX;
  while (done < transfer.bytes) {
    if (waits && !WaitForMore(context, transfer, arguments.fd(), deadline)) break;
    const OtherCalls calls;
    if (!calls || (waits && !IsSameFile(transfer, arguments.fd()))) break;
    const long moved = Move(call, arguments, transfer, done);
    if (moved > 0) {
      done += static_cast<size_t>(moved);
    } else if (moved == -EAGAIN && waits) {
      // It was ready, and is not: another thread was first, or the kernel has no memory for it.
      const timespec pause = {0, 1'000'000};
      sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
    } else {
      break;
    }
  }
  arch::EndCall(context, static_cast<int64_t>(done));
}

}  // namespace memtrace
