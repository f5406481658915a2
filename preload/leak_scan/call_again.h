// CallAgain: a call of the kernel that the handler of a scan's signal makes in place of the one
// that it interrupted, and that the signal of another scan may interrupt in turn.
//
// It is made with all signals blocked, so what waits takes the program's mask as an argument
// (ppoll, epoll_pwait): then a signal of the program's ends it whenever it comes, as it would have
// ended the call itself. Where the kernel has no such call, AsInterrupted unblocks them around it.
//
// Threads: the handlers of one thread.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_CALL_AGAIN_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_CALL_AGAIN_H_

#include <time.h>

#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/sys.h"

namespace memtrace {

struct CallArguments {
  uint64_t at[6] = {};

  CallArguments() = default;
  // Takes the arguments of the call that a handler with this ucontext interrupted.
  explicit CallArguments(const void* context) {
    for (int i = 0; i < 6; ++i) at[i] = arch::CallArgument(context, i);
  }
  long fd() const { return static_cast<long>(at[0]); }
  template <typename T>
  T* pointer(int i) const { return reinterpret_cast<T*>(at[i]); }
  template <typename T>
  void set(int i, const T* value) { at[i] = reinterpret_cast<uint64_t>(value); }
};

// Makes the call and returns its result. `*by_us`: if that is -EINTR, whether it
// was for a scan's signal.
long CallAgain(long number, const CallArguments& arguments, bool* by_us);

// Whether the handler with this ucontext interrupted a CallAgain();
// NoteScanInCallAgain() tells its caller.
bool IsInCallAgain(const void* context);
void NoteScanInCallAgain(const void* context);

// Whether the handler runs on the thread's own stack, with room for another one and for one of the
// program's. Elsewhere, as on an alternate signal stack or a coroutine's, it is not known how much
// the program counts on.
bool HasRoomToGoOn(const void* context);

// While this object lives, the signals that the program has unblocked are unblocked.
class AsInterrupted {
 public:
  explicit AsInterrupted(const void* context);
  ~AsInterrupted();
  AsInterrupted(const AsInterrupted&) = delete;
  AsInterrupted& operator=(const AsInterrupted&) = delete;

 private:
  uint64_t before_ = 0;
};
const void* MaskOf(const void* context);
inline constexpr uint64_t kMaskBytes = sizeof(uint64_t);

inline constexpr uint64_t kNsInSecond = 1'000'000'000;
// 0: none, or so long that it is none.
uint64_t NsOf(int64_t seconds, int64_t ns);
inline timespec TimeOf(uint64_t ns) {
  return {static_cast<time_t>(ns / kNsInSecond), static_cast<long>(ns % kNsInSecond)};
}
// False: the program has installed a filter since, so no call may be made (allowed_calls.h).
bool MayCall();
// -1: `fd` is no socket.
int SocketOption(long fd, int option);
// The time of SO_RCVTIMEO or SO_SNDTIMEO; 0: none, or `fd` is no socket.
uint64_t SocketTimeNs(long fd, int option);

// Waits until the descriptor is ready for `events`, or until `deadline_ns` (UINT64_MAX: for ever).
// Returns what poll() returns: -EINTR is for a signal of the program's; -EPERM: no call may be made
// any more. `*seen`: the events that are there.
long WaitForDescriptor(const void* context, long fd, short events, uint64_t deadline_ns,
                       short* seen);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_CALL_AGAIN_H_
