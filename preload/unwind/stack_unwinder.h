// StackUnwinder: the return addresses of this thread, exactly, by CFI.
//
// This is the interface between the event path and the stack engine. The layers,
// each for what the one before could not answer: a memo of whole stacks
// (stack_memo.h), the join with the thread's last stack (stack_join.h), the walk by
// a per-PC rule table (fast_walk.h, rule_table.h), the generic CFI interpreter
// (cfi_unwinder.h). docs/stack-capture.md explains them.
//
// Threads: a StackUnwinder belongs to one thread. The rule table is shared and
// lock-free. Nothing here takes a lock, allocates or calls the loader; it calls
// _dl_find_object, which is async-signal-safe. A signal handler may call
// Capture() on the same object while the thread is inside it.

#ifndef MEMTRACE_PRELOAD_UNWIND_STACK_UNWINDER_H_
#define MEMTRACE_PRELOAD_UNWIND_STACK_UNWINDER_H_

#include <cstddef>
#include <cstdint>

#include "format/trace_format.h"
#include "preload/unwind/module_epoch.h"  // SetInstanceOf, BeginClose, EndClose
#include "preload/unwind/stack_bounds.h"
#include "preload/unwind/stack_join.h"

namespace memtrace::unwind {

// Where to begin: the caller of the interposed function, at its call. The
// interposed function's frame is still on the stack while Capture() runs.
struct CallSite {
  uintptr_t pc;   // return address into the caller
  uintptr_t cfa;  // its stack pointer after the return
  uintptr_t rbp;  // its frame pointer register at the call
};

// The key by which StackSlots and the trace know a step: the address in the low 48 bits,
// the module instance in the high 16 (0 permanent). The address is always one
// past a byte of the instruction that is meant, so that a reader looks up
// PcOf(key) - 1 whatever the frame is:
//   an ordinary frame                the return address
//   a frame a signal interrupted,    the exact pc, plus one
//   a signal trampoline, and the
//   first frame of a context
constexpr uint64_t PcOf(uint64_t key) { return key & ((uint64_t{1} << 48) - 1); }
constexpr uint32_t InstanceOf(uint64_t key) { return static_cast<uint32_t>(key >> 48); }

struct UnwindResult {
  size_t frames = 0;  // written, innermost first
  format::StackMarker marker = format::StackMarker::kNone;  // why it ended early
};

// Plain words of one thread; another thread may read them at any time.
struct UnwindCounters {
  uint64_t memo_hits = 0;    // stacks whose read-set was found unchanged
  uint64_t joined_whole = 0; // stacks equal to the last one of their thread
  uint64_t joined_part = 0;  // stacks whose outer part was that of the last one
  uint64_t frames_joined = 0;  // frames that were compared instead of walked
  uint64_t walked = 0;       // other stacks the rule table sufficed for
  uint64_t generic = 0;      // stacks that needed the generic interpreter
  uint64_t frames = 0;       // frames of all of them
  uint64_t marked = 0;       // stacks that ended with a marker other than kContextEnd
  uint64_t rule_misses = 0;  // steps that had to read CFI
  uint64_t table_full = 0;   // rules that could not be kept
};

// All bytes zero is a valid, new StackUnwinder: it may live in mapped memory
// without a constructor call.
class StackUnwinder {
 public:
  constexpr StackUnwinder() = default;

  // Writes at most `max` keys (and kMaxFrames), innermost first: the first is
  // the caller itself. More frames than that: marker kTruncated.
  UnwindResult Capture(const CallSite& site, uint64_t* keys, size_t max);

  // The same for the tracer's own purposes: no event has this stack, and no counter.
  UnwindResult CaptureUncounted(const CallSite& site, uint64_t* keys, size_t max) {
    const UnwindCounters before = counters_;
    const UnwindResult result = Capture(site, keys, max);
    counters_ = before;
    return result;
  }

  // Does what Capture() does, by way of the last stack in `join`, which must be this thread's own.
  // kGiveUp: this stack must be captured by Capture().
  StackJoin::Outcome Join(const CallSite& site, StackJoin* join) {
    return join->Capture(site, &bounds_, &counters_);
  }

  void CountMemoHit() { ++counters_.memo_hits; }

  // Where words can be read, as far as it is known.
  StackWindow primary_stack() const { return {bounds_.primary_lo(), bounds_.primary_hi()}; }
  bool MayBePrimary(uintptr_t address) const { return bounds_.MayBePrimary(address); }

  // Before the object serves another thread.
  void Reset() { bounds_.Reset(); }

  void ForgetCounters() { counters_ = {}; }

  const UnwindCounters& counters() const { return counters_; }

 private:
  bool CaptureGeneric(const CallSite& site, uint64_t* keys, size_t max, UnwindResult* result);

  StackBounds bounds_;
  UnwindCounters counters_;
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_UNWINDER_H_
