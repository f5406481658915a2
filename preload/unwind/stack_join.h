// StackJoin: the last stack of a thread, and what of it is still there.
//
// The next allocation of a thread usually has most of its stack in common with the
// last one. So the last walk is kept, with every word it read, and the next walk
// stops as soon as it stands in a frame that the last one stood in too, if the
// words from there outwards are still the same: then, by determinism, the rest of
// the walk would be the same (docs/stack-capture.md has the argument). Comparing a
// frame costs a load and a compare; walking it costs a rule, the same loads, and a
// node of the stack.
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

class StackJoin {
 public:
  StackJoin() = default;
  StackJoin(const StackJoin&) = delete;  // its pointers are into itself
  StackJoin& operator=(const StackJoin&) = delete;

  // The frames that there is room for at first. When a stack was deeper, the owner
  // gives memory for more.
  static constexpr size_t kUsual = 512;
  // The most frames that are recorded: for a stack that is deeper than kMaxFrames (kTruncated) some
  // more than those. While the program recurses further, or comes back, the next stacks join the
  // record, as long as they have kMaxFrames and no more than this: only once in some hundred levels
  // a stack is walked anew. The reader takes stacks of 1280 nodes, with the marker.
  static constexpr size_t kMaxRecorded = kMaxFrames + 255;

  enum class Outcome : uint8_t {
    kRecorded,  // key(0) .. key(size() - 1) are the stack, shared() of them from the last one
    kGiveUp,    // walk it without a record
  };

  Outcome Capture(const CallSite& site, StackBounds* bounds, UnwindCounters* counters);

  size_t size() const { return size_; }
  // How many of the outermost frames are the same as at the last Capture().
  size_t shared() const { return shared_; }
  format::StackMarker marker() const { return marker_; }

  // The key of frame i, counted from the outermost.
  uint64_t key(size_t i) const { return frames_[i].key; }
  // The caller's name for the stack from the outermost frame to this one. It stays
  // while the frame is shared; 0 for a new frame.
  uint64_t name(size_t i) const { return frames_[i].name; }
  void set_name(size_t i, uint64_t name) { frames_[i].name = name; }

  // The epoch of modules (module_epoch.h) when the record was made.
  uint64_t epoch_word() const { return epoch_word_; }

  // Must the innermost frame's rbp be what it was, for the stack to be the same?
  bool needs_rbp() const { return checks_[size_ - 1] & kNeedsRbp; }

  // Gives every word that the stack was found by, innermost first, to
  // visit(address, value); stops when that returns false.
  template <typename Visit>
  void ForEachWord(Visit visit) const;

  void Forget() { size_ = 0; }

  // The last Capture() gave up for want of room, and there can be more:
  // UseMemory(), once, and again.
  bool wants_memory() const { return wants_memory_; }
  static constexpr size_t memory_bytes() {
    return kMaxRecorded * (sizeof(Return) + sizeof(Frame) + sizeof(FreshFrame) + 1);
  }
  // Zeroed, and never taken back; null: there is none, and it asks no more.
  void UseMemory(void* memory);

  // Makes joins with the present record compare return addresses alone, which is unsound.
  void TrustReturnAddressesForTesting() {
    for (size_t i = 0; i < size_; ++i) checks_[i] = 0;
  }

 private:
  // More than the return address to compare, for a frame; and what lies outside of it
  // depends on its rbp.
  enum Checks : uint8_t { kCheckCfa = 1, kCheckRbp = 2, kCompared = 3, kNeedsRbp = 4 };

  // The data that every comparison needs, packed for the cache: pc is the word at sp - 8.
  struct Return {
    uintptr_t sp;
    uintptr_t pc;
  };
  struct Frame {
    uintptr_t rbp;        // true when this frame was walked; meant only if kNeedsRbp
    uintptr_t rbp_slot;   // 0: the inner frame's rbp
    uintptr_t cfa_slot;   // 0: computed; bit 0: sp is 8 more than the word there
    uint64_t key;
    uint64_t name;
    uint16_t rule_flags;  // of the rule that leaves this frame
  };
  struct FreshFrame {
    Return at;
    Frame frame;
  };

  bool Follows(size_t outer) const;
  bool FollowsBySlots(size_t outer) const;
  bool FollowAtOnce(size_t outer) const;
  size_t FirstDifferenceOfMany(size_t from) const;
  size_t FirstDifference(size_t from) const;
  size_t CopyUnchanged(size_t from, size_t to, uintptr_t rbp, size_t count, FastWalk::State* at);
  void Append(size_t kept, size_t count);
  Outcome GiveUp() {
    size_ = 0;
    return Outcome::kGiveUp;
  }
  Outcome GiveUpForMemory() {
    wants_memory_ = capacity_ == kUsual && !refused_;
    return GiveUp();
  }

  size_t size_ = 0;
  size_t shared_ = 0;
  uint64_t epoch_word_ = 0;
  format::StackMarker marker_ = format::StackMarker::kNone;
  bool wants_memory_ = false;
  bool refused_ = false;
  size_t capacity_ = kUsual;
  // The record, outermost first.
  Return* returns_ = usual_returns_;
  uint8_t* checks_ = usual_checks_;
  Frame* frames_ = usual_frames_;
  FreshFrame* fresh_ = usual_fresh_;  // what this walk found, innermost first

  Return usual_returns_[kUsual];
  uint8_t usual_checks_[kUsual];
  Frame usual_frames_[kUsual];
  FreshFrame usual_fresh_[kUsual];
};

template <typename Visit>
void StackJoin::ForEachWord(Visit visit) const {
  for (size_t i = size_ - 1; i > 0; --i) {
    const size_t outer = i - 1;
    if (!visit(returns_[outer].sp - kReturnSlot, returns_[outer].pc)) return;
    const Frame& frame = frames_[outer];
    if (checks_[outer] & kCheckCfa &&
        !visit(frame.cfa_slot & ~uintptr_t{1}, returns_[outer].sp - (frame.cfa_slot & 1 ? 8 : 0))) {
      return;
    }
    if (checks_[outer] & kCheckRbp && !visit(frame.rbp_slot, frame.rbp)) return;
  }
}

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_JOIN_H_
