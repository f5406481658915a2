// FastWalk: leaves frames by the rules of the rule table, with rsp and rbp alone.
//
// One object is one walk. Step() is the loop body of both users: the plain walk
// (stack_unwinder.cc) and the walk that joins the last stack (stack_join.cc). What
// changes with every frame is a State, which stays in machine registers; the rare
// steps get and give it by value.
//
// Threads: the caller's, on its own stack. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_FAST_WALK_H_
#define MEMTRACE_PRELOAD_UNWIND_FAST_WALK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/trace_format.h"
#include "preload/arch/arch.h"
#include "preload/unwind/frame_rule.h"
#include "preload/unwind/rule_table.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace::unwind {

struct UnwindCounters;

constexpr uint64_t FrameKey(uintptr_t pc, uint16_t tag) {
  return pc | static_cast<uint64_t>(tag) << 48;
}

// Where a step read words, besides the return address at sp - 8 of the outer frame; and
// the flags of its rule.
struct StepReads {
  uintptr_t rbp_slot = 0;  // where the outer frame's rbp was loaded from; 0: unchanged
  uintptr_t cfa_slot = 0;  // where the CFA was loaded from, bit 0 set if 8 was added; 0: computed
  uint16_t rule_flags = 0;
};

// The most frames of a walk; those further out are left out.
inline constexpr size_t kMaxFrames = 1024;

class FastWalk {
 public:
  struct State {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t rbp;
    bool exact;  // pc was interrupted by a signal
  };
  enum class Next : uint8_t {
    kGoOn,
    kEnd,      // complete
    kMarked,   // marker() says why it ends; this frame is known
    kGeneric,  // this frame needs more registers than these
  };

  FastWalk(StackBounds* bounds, UnwindCounters* counters, uintptr_t sp)
      : bounds_(bounds), counters_(counters), window_(bounds->Enter(sp)) {}

  // Is this a pc that a frame can have? Marks the end otherwise.
  bool IsFrame(uintptr_t pc) {
    if (pc >> kAddressBits == 0 && pc != 0) [[likely]] return true;
    marker_ = pc == 0 ? MarkerOfNoReturn(bounds_->IsPrimary(window_))
                      : format::StackMarker::kInconsistent;
    repeatable_ = false;
    return false;
  }

  // Leaves the frame of `state` and tells its key. On kGoOn `state` is the outer
  // frame's, and `reads` what that was found by.
  [[gnu::always_inline]] Next Step(State* state, uint64_t* key, StepReads* reads);

  format::StackMarker marker() const { return marker_; }
  void Truncate() {
    marker_ = format::StackMarker::kTruncated;
    repeatable_ = false;
  }

  // May what was found be taken again, once the words it read are found equal?
  // Not over a signal frame, with words that lie off the primary stack, through modules
  // that glibc unloads unseen, or when a check ended the walk.
  bool repeatable() const { return repeatable_; }
  const StackWindow& window() const { return window_; }

  // Is there still no unwind information for a return address, as when a walk
  // ended there? Code may have been loaded since.
  bool StillUnknown(uintptr_t pc);

 private:
  [[gnu::noinline]] uint64_t Miss(uintptr_t pc, bool exact, uint64_t* key);
  [[gnu::noinline]] Next Unusual(FrameRule rule, State* state, StepReads* reads);
  // A frame that was called on another stack (a stack that is made larger by pieces, a callback on
  // a stack of its own) has its caller's in rbp or in memory, and that may lie below. Not within
  // the thread's own stack: there it would be wrong.
  [[gnu::noinline]] bool LeavesStack(FrameRule rule, uintptr_t slot) {
    if ((rule.flags & (kCfaFromRbp | kCfaLoaded)) == 0 || slot % 8 != 0 || window_.Contains(slot))
      return false;
    if (stacks_left_ == 0) return false;
    --stacks_left_;
    const bool was_primary = bounds_->IsPrimary(window_);
    const StackWindow there = bounds_->Enter(slot);
    if (!there.Contains(slot) || (was_primary && bounds_->IsPrimary(there))) return false;
    dl_find_object code;
    if (_dl_find_object(reinterpret_cast<void*>(*reinterpret_cast<const uint64_t*>(slot) - 1),
                        &code) != 0)
      return false;
    repeatable_ = false;
    window_ = there;
    return true;
  }
  // A word outside of the primary stack may be unreadable when it is asked for again.
  [[gnu::noinline]] bool MoveWindow(uintptr_t address) {
    const bool moved = bounds_->Move(address, &window_);
    if (!moved || !bounds_->IsPrimary(window_)) repeatable_ = false;
    return moved;
  }
  bool Read(uintptr_t address, uint64_t* value) {
    if (!window_.Contains(address) && !MoveWindow(address)) return false;
    memcpy(value, reinterpret_cast<const void*>(address), sizeof(*value));
    return true;
  }
  Next Mark(format::StackMarker marker) {
    marker_ = marker;
    return Next::kMarked;
  }
  Next MarkOnce(format::StackMarker marker) {
    repeatable_ = false;
    return Mark(marker);
  }

  StackBounds* const bounds_;
  UnwindCounters* const counters_;
  StackWindow window_;
  format::StackMarker marker_ = format::StackMarker::kNone;
  bool repeatable_ = true;
  uint16_t stacks_left_ = 256;  // may be left so often: a walk of nonsense ends
};

inline FastWalk::Next FastWalk::Step(State* state, uint64_t* frame_key, StepReads* reads) {
  State at = *state;
  const uint64_t lookup = RuleTable::Lookup(at.pc, at.exact);
  uint64_t key;
  uint64_t packed = RuleTable::Instance().Find(lookup, &key);
  if (packed == 0) [[unlikely]] packed = Miss(at.pc, at.exact, &key);
  const FrameRule rule = FrameRule::Unpacked(packed);
  *frame_key = FrameKey(at.pc + at.exact, RuleTable::TagOf(key));
  reads->rule_flags = rule.flags;
  if (packed == 0) [[unlikely]] return Next::kMarked;
  if (rule.flags & kUnusual) [[unlikely]] {
    if ((rule.flags & (kSignal | kContextEnd)) != 0 && !at.exact) ++*frame_key;
    State outer = at;
    StepReads outer_reads;
    const Next next = Unusual(rule, &outer, &outer_reads);
    *state = outer;
    *reads = outer_reads;
    return next;
  }
  const uintptr_t cfa = (rule.flags & kCfaFromRbp ? at.rbp : at.sp) +
                        static_cast<uintptr_t>(int64_t{rule.cfa_offset});
  // The return address lies in this frame: at or above its stack pointer.
  const uintptr_t slot = cfa - kReturnSlot;
  if (slot % 8 != 0 || slot < at.sp) [[unlikely]] {
    if (!LeavesStack(rule, slot)) return MarkOnce(format::StackMarker::kInconsistent);
  }
  if (!window_.ContainsAligned(slot) && !MoveWindow(slot)) [[unlikely]] {
    return MarkOnce(format::StackMarker::kUnreadable);
  }
  at.pc = *reinterpret_cast<const uint64_t*>(slot);
  reads->cfa_slot = 0;
  reads->rbp_slot = 0;
  if (rule.flags & kRbpSaved) {
    const uintptr_t saved = cfa + static_cast<uintptr_t>(int64_t{rule.rbp_words} * 8);
    if (!window_.ContainsAligned(saved) && !MoveWindow(saved)) [[unlikely]] {
      return MarkOnce(format::StackMarker::kUnreadable);
    }
    at.rbp = *reinterpret_cast<const uint64_t*>(saved);
    reads->rbp_slot = saved;
  }
  at.sp = cfa;
  at.exact = false;
  *state = at;
  return Next::kGoOn;
}

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_FAST_WALK_H_
