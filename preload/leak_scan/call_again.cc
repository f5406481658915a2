#include "preload/leak_scan/call_again.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/process.h"
#include "preload/unwind/stack_bounds.h"
#include "preload/unwind/thread_descriptor.h"

// The address of the owner is where the handler of another scan finds it (arch::CallAgainOwner).
extern "C" long memtrace_call_again(bool* by_us, long number, const uint64_t* arguments);
extern "C" void memtrace_called_again();
MEMTRACE_DEFINE_CALL_AGAIN("memtrace_call_again", "memtrace_called_again");
extern void* __libc_stack_end __attribute__((weak));

namespace memtrace {
namespace {

constexpr uintptr_t kRoomBytes = 32 << 10;
// The stack of the first thread grows. A stack pointer farther from its begin than this is on
// another stack, a coroutine's.
constexpr uintptr_t kMostOfFirstStack = 64 << 20;

void SetMask(const void* mask, uint64_t* before) {
  sys::Call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(mask),
            reinterpret_cast<long>(before), kMaskBytes);
}

template <typename T>
bool GetOption(long fd, int option, T* value) {
  socklen_t bytes = sizeof(*value);
  return !sys::Failed(sys::Call(SYS_getsockopt, fd, SOL_SOCKET, option,
                                reinterpret_cast<long>(value), reinterpret_cast<long>(&bytes)));
}

}  // namespace

long CallAgain(long number, const CallArguments& arguments, bool* by_us) {
  *by_us = false;
  return memtrace_call_again(by_us, number, arguments.at);
}

bool IsInCallAgain(const void* context) {
  return arch::UcontextPc(context) == reinterpret_cast<uintptr_t>(&memtrace_called_again);
}

void NoteScanInCallAgain(const void* context) {
  *static_cast<bool*>(arch::CallAgainOwner(context)) = true;
}

bool HasRoomToGoOn(const void* context) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const stack_t& alternate = static_cast<const ucontext_t*>(context)->uc_stack;
  const auto alternate_begin = reinterpret_cast<uintptr_t>(alternate.ss_sp);
  if ((alternate.ss_flags & SS_DISABLE) == 0 && here - alternate_begin < alternate.ss_size)
    return false;
  if (sys::Gettid() != g_process.pid) {
    const uintptr_t descriptor = arch::ThreadPointer();
    uintptr_t begin, end, guard;
    return unwind::FindStackBlock(descriptor, descriptor + unwind::kStackBlockEnd, &begin, &end,
                                  &guard) &&
           here < descriptor && here > begin + guard + kRoomBytes;
  }
  if (&__libc_stack_end == nullptr) return false;
  if (reinterpret_cast<uintptr_t>(__libc_stack_end) - here > kMostOfFirstStack) return false;
  for (uintptr_t below = arch::kPageBytes; below <= kRoomBytes; below += arch::kPageBytes) {
    if (!unwind::ProbeWord((here - below) & ~uintptr_t{7})) return false;
  }
  return true;
}

AsInterrupted::AsInterrupted(const void* context) { SetMask(MaskOf(context), &before_); }
AsInterrupted::~AsInterrupted() { SetMask(&before_, nullptr); }

const void* MaskOf(const void* context) {
  return &static_cast<const ucontext_t*>(context)->uc_sigmask;
}

uint64_t NsOf(int64_t seconds, int64_t ns) {
  constexpr int64_t kMostSeconds = 1'000'000'000;
  if (seconds < 0 || ns < 0 || seconds > kMostSeconds) return 0;
  return static_cast<uint64_t>(seconds) * kNsInSecond + static_cast<uint64_t>(ns);
}

bool MayCall() {
  const OtherCalls calls;
  return static_cast<bool>(calls);
}

int SocketOption(long fd, int option) {
  int value = 0;
  return GetOption(fd, option, &value) ? value : -1;
}

uint64_t SocketTimeNs(long fd, int option) {
  timeval limit = {};
  return GetOption(fd, option, &limit) ? NsOf(limit.tv_sec, limit.tv_usec * 1000) : 0;
}

long WaitForDescriptor(const void* context, long fd, short events, uint64_t deadline_ns,
                       short* seen) {
  while (MayCall()) {
    pollfd file = {static_cast<int>(fd), events, 0};
    const uint64_t now = NowNs(CLOCK_MONOTONIC);
    const timespec left = TimeOf(now < deadline_ns ? deadline_ns - now : 0);
    CallArguments arguments;
    arguments.set(0, &file);
    arguments.at[1] = 1;
    if (deadline_ns != UINT64_MAX) arguments.set(2, &left);
    arguments.at[3] = reinterpret_cast<uint64_t>(MaskOf(context));
    arguments.at[4] = kMaskBytes;
    bool by_us;
    const long result = CallAgain(SYS_ppoll, arguments, &by_us);
    *seen = file.revents;
    if (result != -EINTR || !by_us) return result;
  }
  return -EPERM;
}

}  // namespace memtrace
