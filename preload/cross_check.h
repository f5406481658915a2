// CrossCheck: every k-th stack unwound again, by libunwind (MEMTRACE_CROSS_CHECK=k).
//
// What is compared is what a reader will find in the trace: the stack that the slot of
// an event means by the node definitions in the ring, whichever layer it came from. So
// the memo, the join, the walk, the generic interpreter, the slots and the encoding are
// all under the check. docs/stack-capture.md tells the rule of comparison.
//
// For tests and for those who change the stack engine: a check costs tens of
// microseconds. It runs in the place of CaptureStack(), on the thread of the event, inside
// its section. libunwind runs on a stack of ours, for the program's may be small, and
// with signals blocked. errno and the signal mask are as before afterwards.

#ifndef MEMTRACE_PRELOAD_CROSS_CHECK_H_
#define MEMTRACE_PRELOAD_CROSS_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "format/records.h"
#include "format/trace_format.h"
#include "preload/libunwind_oracle.h"
#include "preload/thread_state.h"
#include "preload/written_stacks.h"

namespace memtrace {

// Opens libunwind. From a constructor, for it calls the loader. Without libunwind
// recording goes on unchecked: the trace says so, and standard error, if may_say() allows.
void OpenCrossCheck(bool (*may_say)());

// A new trace begins: nothing is counted yet. In a fork child the check may have to end:
// libunwind's locks are lost if another thread held them.
void RestartCrossCheck(bool forked);

// Writes the counters of the check, where it is on.
void WriteCrossCheckCounters();

// Compares our stack with libunwind's: format::CrossCheckResult has what each result means.
// `*first_different`: the index of the first frame that differs, innermost first.
format::CrossCheckResult CompareStacks(const uint64_t* keys, size_t frames,
                                       format::StackMarker marker, const OracleStack& oracle,
                                       size_t* first_different);

// The check of one thread, in own memory.
class CrossCheck {
 public:
  // Before a stack is captured. Null: the mode is off, or there is no memory.
  static CrossCheck* Begin(ThreadState& state);

  // After it: `slot` is what CaptureStack() returns. Inside the interposed function.
  void Finish(ThreadState& state, const unwind::CallSite& site, uint32_t slot);

 private:
  static constexpr size_t kMostFrames = unwind::StackJoin::kMaxRecorded;
  static constexpr size_t kStackBytes = 64 << 10;

  void Unwind(const unwind::CallSite& site);
  void Tell(const ThreadState& state, const unwind::CallSite& site,
            const WrittenStacks::Stack& stack, format::CrossCheckLayer layer,
            format::CrossCheckResult result, size_t first_different);

  WrittenStacks written_;
  uint64_t first_held_ = 0;       // of the thread's slots, when written_ was up to date
  uint32_t until_next_ = 1;       // stacks to the next check, that one included
  const uint64_t* from_ = nullptr;  // in the ring: what this capture defines
  unwind::UnwindCounters before_;
  ProbedPages pages_;
  OracleStack oracle_;
  OracleFrame frames_[kMostFrames];
  uint64_t keys_[kMostFrames];
  alignas(16) uint8_t stack_[kStackBytes];
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CROSS_CHECK_H_
