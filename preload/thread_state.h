// ThreadState: everything the tracer knows of one thread of the program.
//
// Made at the thread's first event, from memory of our own. Nothing tells us of
// its death: no key, no destructor, for those run too early and cost the program
// a key. A later thread that needs a state looks for one whose kernel task is
// gone, writes what is left in its ring to the trace, and takes it over.
//
//   unclaimed -> owned (Attach, by compare-and-swap of owner_tid) -> the task ends
//   -> a newcomer sees ESRCH from tgkill, or its own tid -> owned again
//
// The list only grows; states are never unmapped.

#ifndef MEMTRACE_PRELOAD_THREAD_STATE_H_
#define MEMTRACE_PRELOAD_THREAD_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/event_ring.h"
#include "preload/stack_slots.h"
#include "preload/unwind/stack_memo.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace {

class CrossCheck;

struct ThreadState {
  // What the event path touches, in the order it does.
  EventRing ring;
  uint32_t events_to_stamp = 1;  // the next time word is due after so many events
  uint32_t stamp_stride = 1;
  uint64_t last_stamp = 0;       // ticks
  uintptr_t sharing = 0;         // g_switch.sharing at the last stamp
  uint16_t tag = 0;              // what marks this state as the owner of blocks
  uintptr_t arena_base = 0;      // the arena heap seen last, and its size then
  size_t arena_bytes = 0;
  StackSlots slots;
  unwind::StackUnwinder unwinder;
  uint64_t caller_node = 0;      // with MEMTRACE_STACKS=off: of the last caller
  uintptr_t caller_pc = 0;

  // What it touches when a sub-buffer is full.
  uint32_t serial = 0;    // 1, 2, ... in the order of first events
  uint32_t sequence = 1;  // of the block being filled
  uint32_t dropped_events = 0;  // since the last block that was written
  bool ring_is_private = false;  // no shared mapping could be had: lost with SIGKILL
  char name[16] = {};

  std::atomic<int> owner_tid{0};  // 0: nobody's
  ThreadState* next_state = nullptr;
  CrossCheck* cross_check = nullptr;  // with MEMTRACE_CROSS_CHECK only

  // Big, and touched only as deep as stacks go. Not on the program's stack, which
  // may be small.
  unwind::StackMemo memo;  // its names, and the join's, are nodes of `slots`
  unwind::StackJoin join;
  uint64_t keys[unwind::kMaxFrames];  // a stack that is not joined
  // The last such stack as the trace knows it, marker first, then outermost first.
  struct WalkedFrame {
    uint64_t word;
    uint64_t node;
  };
  size_t walked_size = 0;
  WalkedFrame walked[unwind::kMaxFrames + 1];
};

// What the exported functions do with a call of this thread. One comparison tells
// kRecording, the mode of every thread of a process that records all, from the rest.
//
//   kNew -> kRecording <-> kInside        with the first event of the thread
//   kNew -> kSampling  <-> kInside        with its first allocation
enum class ThreadMode : uint32_t {
  kNew = 0,        // nothing is known of it yet; or nothing is recorded in this process
  kRecording = 1,  // each call is an event
  kSampling = 2,   // ThreadSlot::until_sample decides
  kInside = 3,     // in the tracer: what the thread allocates is ours
  kInLibunwind = 4,  // the same, on the tracer's behalf and with signals blocked
};
constexpr bool IsInside(ThreadMode mode) { return mode >= ThreadMode::kInside; }

// The only thread-local variables of the event path. Initial-exec, constant
// initialised: readable from a thread's first instruction to its last, one load
// away, and never the cause of an allocation.
struct ThreadSlot {
  ThreadState* state = nullptr;
  ThreadMode mode = ThreadMode::kNew;
  // kSampling: see sampler.h. 0 in every other mode, so that whatever is allocated
  // then is looked at.
  uint64_t until_sample = 0;
  uint64_t random = 0;
};
extern thread_local constinit ThreadSlot t_slot __attribute__((tls_model("initial-exec")));

// The state of the calling thread, made or taken over. Null when there is no
// memory or no ring: the event is counted as missed.
ThreadState* AttachThread();

// Writes the ring to the trace file and empties it. What cannot be written is
// counted in dropped_events, and every stack is defined anew.
void SpoolThread(ThreadState& state);

// Fork child: the other threads are gone and the rings are not mapped here.
void ForgetThreads();

// Calls `visit` for every state that has an owner.
template <typename Visit>
void ForEachThread(Visit visit);

ThreadState* FirstThread();

template <typename Visit>
void ForEachThread(Visit visit) {
  for (ThreadState* state = FirstThread(); state != nullptr; state = state->next_state) {
    if (state->owner_tid.load(std::memory_order_acquire) != 0) visit(*state);
  }
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_THREAD_STATE_H_
