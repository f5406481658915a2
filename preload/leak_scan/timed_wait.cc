#include "preload/leak_scan/timed_wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "preload/clock.h"
#include "preload/leak_scan/call_again.h"

namespace memtrace {
namespace {

constexpr uint64_t kNsInMs = 1'000'000;
constexpr long kEpollPwait2 = 441;

struct Wait {
  enum Kind {
    kNone,
    kPoll,      // as ppoll
    kEpoll,     // as epoll_pwait, for whole milliseconds
    kEpoll2,    // epoll_pwait2
    kSleep,     // as ppoll of nothing
    kOther,     // the call itself, with the time in `argument`
    kReadable,  // a socket with SO_RCVTIMEO, SO_SNDTIMEO: without, the kernel makes its call again
    kWritable,
  } kind = kNone;
  uint64_t time_ns = 0;
  long late = 0;       // what it returns when time is up
  int argument = 0;
};

timespec Load(const timespec* time) {
  timespec copy;
  memcpy(&copy, time, sizeof(copy));
  return copy;
}

uint64_t NsAt(const CallArguments& arguments, int i) {
  const auto* const at = arguments.pointer<const timespec>(i);
  if (at == nullptr) return 0;
  const timespec time = Load(at);
  return NsOf(time.tv_sec, time.tv_nsec);
}

uint64_t MsAt(const CallArguments& arguments, int i) {
  const int ms = static_cast<int>(arguments.at[i]);
  return ms > 0 ? static_cast<uint64_t>(ms) * kNsInMs : 0;
}

// Where a sleep was told to put what is left of it; the kernel has done so.
timespec* LeftOf(long call, const CallArguments& arguments) {
  if (call == SYS_nanosleep) return arguments.pointer<timespec>(1);
  return call == SYS_clock_nanosleep ? arguments.pointer<timespec>(3) : nullptr;
}

bool IsOfWallClock(uint64_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME ||
         clock == CLOCK_TAI;
}

// The kernel shortens the time of ppoll, select and pselect6 by itself, and
// absolute ones stay true.
Wait WaitOf(long call, const CallArguments& arguments) {
  switch (call) {
    case SYS_poll: return {Wait::kPoll, MsAt(arguments, 2)};
    case SYS_epoll_wait: case SYS_epoll_pwait: return {Wait::kEpoll, MsAt(arguments, 3)};
    case kEpollPwait2: return {Wait::kEpoll2, NsAt(arguments, 3)};
    case SYS_nanosleep: return {Wait::kSleep, NsAt(arguments, 0)};
    case SYS_clock_nanosleep:
      if ((arguments.at[1] & TIMER_ABSTIME) != 0 || !IsOfWallClock(arguments.at[0])) return {};
      return {Wait::kSleep, NsAt(arguments, 2)};
    case SYS_semtimedop: return {Wait::kOther, NsAt(arguments, 3), -EAGAIN, 3};
    case SYS_futex:
      if ((arguments.at[1] & static_cast<uint64_t>(FUTEX_CMD_MASK)) != FUTEX_WAIT) return {};
      return {Wait::kOther, NsAt(arguments, 3), -ETIMEDOUT, 3};
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
      return {Wait::kReadable, SocketTimeNs(arguments.fd(), SO_RCVTIMEO), -EAGAIN};
    // For all but stream sockets poll() does not tell what the call waits for.
    case SYS_write: case SYS_writev: case SYS_sendto: case SYS_sendmsg:
      if (SocketOption(arguments.fd(), SO_TYPE) != SOCK_STREAM) return {};
      return {Wait::kWritable, SocketTimeNs(arguments.fd(), SO_SNDTIMEO), -EAGAIN};
    case SYS_connect:
      if (SocketOption(arguments.fd(), SO_DOMAIN) == AF_UNIX) return {};
      return {Wait::kWritable, SocketTimeNs(arguments.fd(), SO_SNDTIMEO), -EINPROGRESS};
    default: return {};
  }
}

// The call that waits in its place, for `left_ns`.
long WaitFor(const void* context, long call, const CallArguments& from, const Wait& wait,
             uint64_t left_ns, bool* by_us) {
  CallArguments arguments = from;
  const timespec left = TimeOf(left_ns);
  const auto set_mask = [&](int i) {
    arguments.at[i] = reinterpret_cast<uint64_t>(MaskOf(context));
    arguments.at[i + 1] = kMaskBytes;
  };
  switch (wait.kind) {
    case Wait::kPoll: case Wait::kSleep:
      if (wait.kind == Wait::kSleep) arguments.at[0] = arguments.at[1] = 0;
      arguments.set(2, &left);
      set_mask(3);
      return CallAgain(SYS_ppoll, arguments, by_us);
    case Wait::kEpoll:
      arguments.at[3] = std::min<uint64_t>((left_ns + kNsInMs - 1) / kNsInMs, INT_MAX);
      if (call == SYS_epoll_wait || arguments.at[4] == 0) set_mask(4);
      return CallAgain(SYS_epoll_pwait, arguments, by_us);
    case Wait::kEpoll2:
      arguments.set(3, &left);
      if (arguments.at[4] == 0) set_mask(4);
      return CallAgain(call, arguments, by_us);
    default: {
      arguments.set(wait.argument, &left);
      const AsInterrupted signals(context);
      return CallAgain(call, arguments, by_us);
    }
  }
}

// Waits, and returns what the call returns.
long WaitUntil(uint64_t deadline_ns, const void* context, long call, const CallArguments& arguments,
               const Wait& wait) {
  for (;;) {
    const uint64_t now = NowNs(CLOCK_MONOTONIC);
    const uint64_t left_ns = now < deadline_ns ? deadline_ns - now : 0;  // at least one look
    bool by_us;
    const long result = WaitFor(context, call, arguments, wait, left_ns, &by_us);
    if (result != -EINTR) return result;
    if (by_us && left_ns != 0 && MayCall()) continue;
    if (by_us) return wait.late;
    if (timespec* const left = LeftOf(call, arguments); left != nullptr) {
      const uint64_t end = NowNs(CLOCK_MONOTONIC);
      *left = TimeOf(end < deadline_ns ? deadline_ns - end : 0);
    }
    return result;
  }
}

}  // namespace

bool GoOnWaiting(void* context, long call, bool with_mask) {
  const CallArguments arguments(context);
  const Wait wait = WaitOf(call, arguments);
  if (wait.time_ns == 0 || (wait.kind != Wait::kOther) != with_mask || !HasRoomToGoOn(context))
    return false;
  uint64_t time_ns = wait.time_ns;
  if (const timespec* const left = LeftOf(call, arguments); left != nullptr) {
    const timespec time = Load(left);
    time_ns = std::min(time_ns, NsOf(time.tv_sec, time.tv_nsec));
  }
  const uint64_t deadline = NowNs(CLOCK_MONOTONIC) + time_ns;
  if (wait.kind != Wait::kReadable && wait.kind != Wait::kWritable) {
    arch::EndCall(context, WaitUntil(deadline, context, call, arguments, wait));
    return true;
  }
  short seen;
  const short events = wait.kind == Wait::kReadable ? POLLIN : POLLOUT;
  const long result = WaitForDescriptor(context, arguments.fd(), events, deadline, &seen);
  if (result > 0) {
    arch::MakeCallAgain(context, call);  // it waits no more
  } else {
    arch::EndCall(context, result == 0 ? wait.late : result);
  }
  return true;
}

}  // namespace memtrace
