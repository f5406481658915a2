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
// The list only grows; states are never unmapped. A newcomer looks at eight of them on average,
// at all if others did not need theirs: so there are few more than threads lived at once.
//
// A thread has further states for its signal handlers, once one has interrupted the
// tracer: nested_section.h.

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

// A sleep of the thread that a leak scan interrupted and had made again
// (leak_scan/interrupted_call.h): when, and when it has lasted long enough.
struct SleepMadeAgain {
  uintptr_t pc = 0, stack_pointer = 0;
  uint64_t again_ns = 0, until_ns = 0;
};

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

  // What it touches when the ring is full.
  uint32_t serial = 0;    // 1, 2, ... in the order of first events
  uint32_t sequence = 1;  // of the block being filled
  uint32_t dropped_events = 0;  // since the last block that was written
  uint32_t segments_begun = 0;  // of a flight recorder, when stacks were last told anew
  bool ring_is_private = false;  // no shared mapping could be had: lost with SIGKILL
  bool abandoned = false;        // its events are a parent's: see interrupted_fork.h
  char name[16] = {};

  SleepMadeAgain sleep;

  // For the handlers that interrupt the tracer while it uses this state.
  ThreadState* for_handlers = nullptr;
  uint32_t handlers_of = 0;     // the thread, if this is such a state; else 0
  bool in_use = false;          // of such a state: a section is open (nested_section.h)
  uintptr_t section_frame = 0;  //   and where on the stack

  // The owner of a state that was made by a vfork child, or another process that shares our
  // memory, on behalf of whoever has its thread-local variables: we cannot tell when it is gone.
  static constexpr int kUnknownOwner = -1;
  std::atomic<int> owner_tid{0};  // 0: nobody's
  std::atomic<uintptr_t> owner_control_block{0};  // the thread's: its thread pointer
  ThreadState* next_state = nullptr;
  CrossCheck* cross_check = nullptr;  // with MEMTRACE_CROSS_CHECK only

  // What another allocator than glibc's took by name last, without an event: see
  // allocator_bracket.h.
  static constexpr uint32_t kOwnBlocks = 4;
  const void* own_blocks[kOwnBlocks] = {};
  uint32_t own_block_count = 0;

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
// kRecording, the mode of every thread of a process that records all, from the rest, and
// kSampling, the mode of one that samples, from what is neither.
//
//   kNew -> kRecording <-> kInside        with the first event of the thread
//   kNew -> kSampling  <-> kInside        with its first allocation
//   kRecording -> kOff                    with the first event after the recording has ended
//   any before kInside <-> kInAllocator   around a real call, where that is not glibc's
//   kInAllocator <-> kInside              a mapping of the allocator's; a handler
enum class ThreadMode : uint32_t {
  kSampling = 0,   // ThreadSlot::until_sample decides
  kRecording = 1,  // each call is an event
  kNew = 2,        // nothing is known of it yet; or nothing is recorded in this process
  // It has recorded, and nothing is recorded any more. In a fork child that may begin anew; a call
  // that it is in the midst of, from a handler of which the fork came, may have been one that
  // records.
  kOff = 3,
  kInAllocator = 4,  // a call may be the allocator's own: see allocator_bracket.h
  kInside = 5,       // in the tracer, with its own state: a call is a signal handler's
  kOwnCalls = 6,     // in what the tracer calls, with signals blocked: a call is ours
};
constexpr bool IsInside(ThreadMode mode) { return mode >= ThreadMode::kInside; }

// The only thread-local variables of the event path. Initial-exec, constant
// initialised: readable from a thread's first instruction to its last, one load
// away, and never the cause of an allocation.
struct ThreadSlot {
  ThreadState* state = nullptr;
  ThreadMode mode = ThreadMode::kNew;
  uint32_t leaks_disabled = 0;  // memtrace_disable(), so often more than memtrace_enable()
  uint64_t until_sample = 0;    // kSampling: see sampler.h
  uint64_t random = 0;
  uintptr_t section_frame = 0;  // kInside: where on the stack the section is open
  uintptr_t bracket_frame = 0;  // where a call of the real allocator is bracketed; 0: none is
  const void* bracket_ends = nullptr;  // the block that this call ends
};
extern thread_local constinit ThreadSlot t_slot __attribute__((tls_model("initial-exec")));

// While it lives, what the thread allocates and maps is on the tracer's behalf and no event.
// With signals blocked, for a handler's calls are.
class OwnCalls {
 public:
  OwnCalls() : mode_(t_slot.mode) { t_slot.mode = ThreadMode::kOwnCalls; }
  ~OwnCalls() { t_slot.mode = mode_; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  const ThreadMode mode_;
};

// The state of the calling thread, made or taken over. Null when there is no
// memory or no ring: the event is counted as missed.
ThreadState* AttachThread();

// The same for its handlers that interrupt the tracer while it uses `interrupted`, one of
// the calling thread's states.
ThreadState* AttachForHandlers(ThreadState& interrupted);

// A section of this state was left for good by a jump: what is half done is nothing.
void RecoverThread(ThreadState& state);

// What an owner did is over when the kernel knows of no such task. ThreadSanitizer cannot
// know that: for it, each section ends with a release and a newcomer begins with an acquire.
#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
inline void OwnerMayEnd(ThreadState* state) { __tsan_release(state); }
inline void OwnerIsGone(ThreadState* state) { __tsan_acquire(state); }
#else
inline void OwnerMayEnd(ThreadState*) {}
inline void OwnerIsGone(ThreadState*) {}
#endif

// Fork child: the other threads are gone and the rings are not mapped here. To be called by its
// first event, whichever thread's that is.
void ForgetThreads();
// Fork child, in the thread that lives on, before there is another: the state that it has is its
// parent's, and would be whoever's in ForgetThreads().
void ForgetParentsState();
// Fork child: `state` will be finished with, but is no thread's any more.
void AbandonThread(ThreadState& state);

// Calls `visit` for every state that has an owner.
template <typename Visit>
void ForEachThread(Visit visit);

ThreadState* FirstThread();

// Whether `state` is the calling thread's own, or one of its handlers'.
bool IsOfThisThread(const ThreadState* state);

template <typename Visit>
void ForEachThread(Visit visit) {
  for (ThreadState* state = FirstThread(); state != nullptr; state = state->next_state) {
    if (state->owner_tid.load(std::memory_order_acquire) != 0) visit(*state);
  }
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_THREAD_STATE_H_
