// The recording switch: the one question of every event, whether it is recorded.
//
// It lies alone on a page that the kernel wipes in a fork child (MADV_WIPEONFORK): the first event
// of a child finds it 0 and begins a trace of its own, without atfork handlers and without asking
// for the pid on every event. A vfork child shares the memory, the switch and the ring, and
// records into them.

#ifndef MEMTRACE_PRELOAD_RECORDING_SWITCH_H_
#define MEMTRACE_PRELOAD_RECORDING_SWITCH_H_

#include <atomic>
#include <cstdint>

#include "preload/arch/arch.h"

namespace memtrace {

// ForkSensitivePage::recording, when it is not 0.
inline constexpr uint32_t kRecordAll = 1, kRecordStopped = 2;
// ForkSensitivePage::starting, when it is not 0.
inline constexpr uint32_t kStarting = 1, kStartAwaited = 2;

struct alignas(arch::kPageBytes) ForkSensitivePage {
  // kRecordStopped: by the program (memtrace_stop()); blocks are still told, without stacks.
  std::atomic<uint32_t> recording{0};
  // 0 while one thread alone has had events. Then: the table of BlockOwners, which is aligned
  // for that, and in the low bits an epoch, see BeginEpoch().
  std::atomic<uintptr_t> sharing{0};
  // 1: this process's recording has ended. What it forks finds a 0.
  std::atomic<uint32_t> ended{0};
  // A thread is about to begin the trace: kStarting, or kStartAwaited when others wait for it before
  // their first event, which they do unless it takes too long. A futex.
  std::atomic<uint32_t> starting{0};
  std::atomic<uint32_t> start_takes_long{0};
  // So many events of before the trace began are missing in it.
  std::atomic<uint32_t> start_missed_events{0};
  // 1: this is a fork child, and its first thread has given up the state that it had before.
  std::atomic<uint32_t> fork_was_seen{0};
};
static_assert(sizeof(ForkSensitivePage) == arch::kPageBytes);
extern ForkSensitivePage g_switch;
// So many that a thread which rests while others go on does not find the same one again by chance.
inline constexpr uintptr_t kEpochs = uintptr_t{1} << 21;
inline constexpr uintptr_t kEpochMask = kEpochs - 1;

// From here on the next event of each thread takes a stamp: what comes behind this is not taken for
// older than what was before it. Nothing where one thread alone has had events.
inline void BeginEpoch() {
  uintptr_t sharing = g_switch.sharing.load(std::memory_order_relaxed);
  if (sharing == 0) return;
  const uintptr_t next = (sharing & ~kEpochMask) | ((sharing + 1) & kEpochMask);
  // If another thread was quicker, its epoch began behind the call as well.
  g_switch.sharing.compare_exchange_strong(sharing, next);
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_RECORDING_SWITCH_H_
