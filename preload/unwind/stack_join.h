// StackJoin: the last stack of a thread, and what of it is still there.
//
// The next allocation of a thread usually has most of its stack in common with the
// last one. So the last walk is kept, with every word it read, and the next walk
// stops as soon as it stands in a frame that the last one stood in too, if the
// words from there outwards are still the same: then, by determinism, the rest of
// the walk would be the same (docs/stack-capture.md has the argument). Comparing a
// frame costs a load and a compare; walking it costs a rule, the same loads, and a
// node of the trie.
//
// Frame i of the record is outside of frame i + 1. It was found from frame i + 1 by
//
//   pc_i   the word at sp_i - 8, always
//   sp_i   computed; or loaded from cfa_slot_i
//   rbp_i  that of frame i + 1; or loaded from rbp_slot_i
//
// and what lies outside of i depends on rbp_i only if needs_rbp_i says so. Hence
// frame i follows again from frame i + 1 if the word at sp_i - 8 is pc_i, and, where
// it applies, the words at cfa_slot_i and rbp_slot_i are what they were. Return
// addresses alone prove nothing when a frame's CFA comes from rbp (a test builds
// that case).
//
// A record is kept only of the thread's primary stack, whose pages stay readable,
// of walks without a signal frame or a failed check, through modules whose unload
// we see; and it is dropped when any module was unloaded since. A stack that ended
// at code without unwind information is asked for it again each time.
//
// Threads: one object belongs to one thread. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_STACK_JOIN_H_
#define MEMTRACE_PRELOAD_UNWIND_STACK_JOIN_H_

#include <cstddef>
#include <cstdint>

#include "format/trace_format.h"
#include "preload/unwind/fast_walk.h"

namespace memtrace::unwind {

struct CallSite;

struct RecordFrame {
  uintptr_t pc;
  uintptr_t sp;
  uintptr_t rbp;        // true when this frame was walked; meant only if needs_rbp
  uintptr_t rbp_slot;   // 0: the inner frame's rbp
  uintptr_t cfa_slot;   // 0: computed; bit 0: sp is 8 more than the word there
  uint64_t key;
  uint16_t rule_flags;  // of the rule that leaves this frame
  uint8_t needs_rbp;    // the frames outside of this one depend on its rbp
  uint8_t checks;       // more than the return address to compare: see Checks
};

class StackJoin {
 public:
  // Deeper stacks are walked each time.
  static constexpr size_t kMaxRecorded = 512;

  enum class Outcome : uint8_t {
    kRecorded,  // frames() are the stack, `shared()` of them from the last one
    kGiveUp,    // walk it without a record
  };

  Outcome Capture(const CallSite& site, StackBounds* bounds, UnwindCounters* counters);

  // Outermost first.
  const RecordFrame* frames() const { return frames_; }
  size_t size() const { return size_; }
  // So many of the outermost are those of the last Capture().
  size_t shared() const { return shared_; }
  format::StackMarker marker() const { return marker_; }

  // Of module_epoch.h, when the record was made.
  uint64_t epoch_word() const { return epoch_word_; }

  // RecordFrame::checks
  enum Checks : uint8_t { kCheckCfa = 1, kCheckRbp = 2 };

  void Forget() { size_ = 0; }

  // What a join would be that compared return addresses alone: unsound.
  void TrustReturnAddressesForTesting() {
    for (size_t i = 0; i < size_; ++i) frames_[i].needs_rbp = frames_[i].checks = 0;
  }

 private:
  static bool Follows(const RecordFrame& outer);
  size_t FirstDifference(size_t from) const;
  size_t CopyUnchanged(size_t from, size_t to, uintptr_t rbp, size_t count, FastWalk::State* at);
  void Append(size_t kept, size_t count);

  size_t size_ = 0;
  size_t shared_ = 0;
  uint64_t epoch_word_ = 0;
  format::StackMarker marker_ = format::StackMarker::kNone;
  RecordFrame frames_[kMaxRecorded];  // outermost first
  RecordFrame fresh_[kMaxRecorded];   // what this walk found, innermost first
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_JOIN_H_
