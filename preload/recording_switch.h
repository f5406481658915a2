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
  // 0 while one thread alone has had events. Then: the table of BlockOwners, which is page
  // aligned, and in the low bits an epoch. A thread that finds another epoch than at its
  // last stamp takes one: so that no thread rests between two stamps for long while others
  // go on, and its events are not taken for older than they are.
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
inline constexpr uintptr_t kEpochMask = arch::kPageBytes - 1;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_RECORDING_SWITCH_H_
