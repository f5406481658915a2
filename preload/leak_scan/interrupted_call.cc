#include "preload/leak_scan/interrupted_call.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include <cstring>

#include "preload/arch/arch.h"
#include "preload/clock.h"
#include "preload/leak_scan/call_again.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/leak_scan/partial_transfer.h"
#include "preload/leak_scan/timed_wait.h"
#include "preload/sys.h"
#include "preload/text.h"
#include "preload/thread_state.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace {
namespace {

// Calls that have done nothing when they fail with EINTR.
bool MayBeMadeAgain(long call) {
  switch (call) {
    case SYS_poll: case SYS_ppoll: case SYS_select: case SYS_pselect6:
    case SYS_epoll_wait: case SYS_epoll_pwait: case 441:  // epoll_pwait2
    case SYS_nanosleep: case SYS_clock_nanosleep: case SYS_pause: case SYS_rt_sigsuspend:
    case SYS_futex: case SYS_semop: case SYS_semtimedop: case SYS_msgrcv: case SYS_msgsnd:
    case SYS_io_getevents: case SYS_io_pgetevents: case 426:  // io_uring_enter
    case SYS_read: case SYS_readv: case SYS_write: case SYS_writev:
    case SYS_accept: case SYS_accept4: case SYS_recvfrom: case SYS_recvmsg: case SYS_recvmmsg:
    case SYS_sendto: case SYS_sendmsg: case SYS_sendmmsg: case SYS_sendfile:
    case SYS_connect:  // which goes on by itself, and waits for that when it is called again
    case SYS_rt_sigtimedwait:
      return true;
    default:  // close() must not be
      return false;
  }
}

// One that is ignored stays pending while it is blocked, and ends nothing.
bool IsIgnored(int signal) {
  arch::KernelAction action = {};
  if (sys::Failed(sys::Call(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(&action),
                            sizeof(uint64_t))))
    return false;
  if (action.handler == reinterpret_cast<void*>(SIG_IGN)) return true;
  return action.handler == nullptr &&
         (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH);
}

// One that ends the call. Another request for a scan does not: behind its handler the call is made
// again, too.
bool HasPendingSignal(const void* context) {
  uint64_t blocked = 0;
  memcpy(&blocked, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof(blocked));
  return IsSignalPending(~blocked & ~OwnLeakSignal());
}

// How long the call sleeps; 0: it is none, or one until a time.
uint64_t SleepNs(const void* context, long call) {
  if (call != SYS_nanosleep && call != SYS_clock_nanosleep) return 0;
  if (call == SYS_clock_nanosleep && (arch::CallArgument(context, 1) & TIMER_ABSTIME) != 0)
    return 0;
  timespec time;
  const uint64_t at = arch::CallArgument(context, call == SYS_nanosleep ? 0 : 2);
  memcpy(&time, reinterpret_cast<const void*>(at), sizeof(time));
  return NsOf(time.tv_sec, time.tv_nsec);
}

// A program that is scanned without end must not sleep without end. How long the sleep had lasted
// when it was interrupted first is not known: it is given all of its time again, counted from then.
// A thread without a state, which never allocated, sleeps all of its time each time.
bool HasSleptEnough(const void* context, uintptr_t pc, uint64_t length_ns) {
  if (t_slot.state == nullptr) return false;
  SleepMadeAgain& sleep = t_slot.state->sleep;
  const uintptr_t stack_pointer = arch::UcontextRegister(context, arch::kRsp);
  const uint64_t now = NowNs(CLOCK_MONOTONIC);
  const bool same = sleep.pc == pc && sleep.stack_pointer == stack_pointer &&
                    now - sleep.again_ns < length_ns;  // or it would have ended meanwhile
  if (!same) sleep = {pc, stack_pointer, now, now + length_ns};
  sleep.again_ns = now;
  return now >= sleep.until_ns;
}

}  // namespace

bool IsSignalPending(uint64_t unblocked) {
  uint64_t pending = 0;
  sys::Call(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof(pending));
  for (uint64_t left = pending & unblocked; left != 0; left &= left - 1) {
    if (!IsIgnored(__builtin_ctzll(left) + 1)) return true;
  }
  return false;
}

SeenCall SeenCall::Parse(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return {};
  SeenCall call;
  call.number = static_cast<long>(TakeNumber(text, 10));
  const auto take = [&text] {
    const size_t at = text.find(" 0x");
    if (at == std::string_view::npos) return uint64_t{0};
    text = From(text, at + 3);
    return TakeNumber(text, 16);
  };
  for (uint64_t& argument : call.place.arguments) argument = take();
  call.place.stack_pointer = take();
  call.place.pc = take();
  return call.place.pc != 0 ? call : SeenCall{};
}

format::CallPlace PlaceOfCall(const void* context, uintptr_t pc) {
  format::CallPlace place;
  for (int i = 0; i < format::kCallArguments; ++i) {
    place.arguments[i] = arch::CallArgument(context, i);
  }
  place.stack_pointer = arch::UcontextRegister(context, arch::kRsp);
  place.pc = pc;
  return place;
}

void MakeInterruptedCallAgain(void* context, const SeenCall& seen) {
  const int64_t result = arch::CallResult(context);
  if (result != -EINTR && (result <= 0 || result > static_cast<int64_t>(kMostTransferred))) return;
  const uintptr_t pc = arch::InterruptedCall(
      context, [](uintptr_t address) { return unwind::ProbeWord(address & ~uintptr_t{7}); });
  if (pc == 0) return;
  if (IsInCallAgain(context)) {
    // A signal of the program's that is pending as well ends the next call: it is made
    // with the program's mask.
    if (result == -EINTR && !HasPendingSignal(context)) NoteScanInCallAgain(context);
    return;
  }
  // A thread that was stopped goes on with restart_syscall, which does not say what that is.
  const bool is_that = seen.number >= 0 && seen.number != SYS_restart_syscall &&
                       seen.place == PlaceOfCall(context, pc);
  const long call = is_that ? seen.number : arch::CallNumberAt(pc);
  if (call < 0) return;
  // A signal of the program's that is pending ends what takes its mask, if this thread is
  // the one that takes it.
  if (result > 0) {
    if (arch::IsJustBehindCall(context)) GoOnTransferring(context, call);
    return;
  }
  if (GoOnWaiting(context, call, /*with_mask=*/true)) return;
  if (!MayBeMadeAgain(call) || HasPendingSignal(context)) return;
  if (GoOnWaiting(context, call, /*with_mask=*/false)) return;
  const uint64_t sleep_ns = SleepNs(context, call);
  if (sleep_ns != 0 && HasSleptEnough(context, pc, sleep_ns)) {
    arch::EndCall(context, 0);
  } else {
    arch::MakeCallAgain(context, call);
  }
}

}  // namespace memtrace
