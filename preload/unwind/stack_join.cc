#include "preload/unwind/stack_join.h"

#include "preload/unwind/module_epoch.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {
namespace {

uint64_t WordAt(uintptr_t address) { return *reinterpret_cast<const uint64_t*>(address); }

// Does what lies outside of a frame depend on the frame's rbp? `rule_flags` leaves
// the frame; `outer_needs` is the answer for the frame outside of it.
bool NeedsRbp(uint16_t rule_flags, bool outer_needs) {
  if (rule_flags & kCfaFromRbp) return true;
  if (rule_flags & kRbpSaved) return (rule_flags & kRbpFromRbp) != 0 && outer_needs;
  return outer_needs;
}

void CountMarker(format::StackMarker marker, UnwindCounters* counters) {
  counters->marked +=
      marker != format::StackMarker::kNone && marker != format::StackMarker::kContextEnd;
}

}  // namespace

// Was `outer` found from its inner frame by words that are still the same? All of
// them lie in the primary stack, which is readable for the thread's whole life.
[[gnu::always_inline]] inline bool StackJoin::Follows(const RecordFrame& outer) {
  if (WordAt(outer.sp - 8) != outer.pc) return false;
  if (outer.checks == 0) [[likely]] return true;
  if (outer.checks & kCheckCfa) {
    const uintptr_t added = outer.cfa_slot & 1 ? 8 : 0;
    if (WordAt(outer.cfa_slot & ~uintptr_t{1}) + added != outer.sp) return false;
  }
  return !(outer.checks & kCheckRbp) || WordAt(outer.rbp_slot) == outer.rbp;
}

// The frames from `from` outwards that still follow from each other: returns the
// outermost that does.
[[gnu::always_inline]] inline size_t StackJoin::FirstDifference(size_t from) const {
  while (from > 0 && Follows(frames_[from - 1])) --from;
  return from;
}

// Frames `from` down to `to` are on this stack but will not stay where they are in
// the record. Copies those inside of `to` to fresh_ and sets `at` to stand in `to`.
// rbp is read anew: where it did not matter for the old stack it was not compared.
size_t StackJoin::CopyUnchanged(size_t from, size_t to, uintptr_t rbp, size_t count,
                                FastWalk::State* at) {
  for (size_t i = from; i > to; --i) {
    fresh_[count] = frames_[i];
    fresh_[count].rbp = rbp;
    ++count;
    if (frames_[i - 1].rbp_slot != 0) rbp = WordAt(frames_[i - 1].rbp_slot);
  }
  *at = {frames_[to].pc, frames_[to].sp, rbp, false};
  return count;
}

// Puts fresh_[0, count) inside of frames_[0, kept).
void StackJoin::Append(size_t kept, size_t count) {
  bool needs = kept > 0 && frames_[kept - 1].needs_rbp;
  for (size_t i = 0; i < count; ++i) {
    RecordFrame& frame = frames_[kept + i];
    frame = fresh_[count - 1 - i];
    needs = NeedsRbp(frame.rule_flags, needs);
    frame.needs_rbp = needs;
    frame.checks = static_cast<uint8_t>((frame.cfa_slot != 0 ? kCheckCfa : 0) |
                                        (needs && frame.rbp_slot != 0 ? kCheckRbp : 0));
  }
  shared_ = kept;
  size_ = kept + count;
}

StackJoin::Outcome StackJoin::Capture(const CallSite& site, StackBounds* bounds,
                                      UnwindCounters* counters) {
  const EpochWord epoch = CurrentEpoch();
  if (epoch.closing()) [[unlikely]] {
    size_ = 0;
    return Outcome::kGiveUp;
  }
  if (epoch.word != epoch_word_) [[unlikely]] {
    size_ = 0;
    epoch_word_ = epoch.word;
  }
  FastWalk walk(bounds, counters, site.cfa);
  if (walk.window().hi != bounds->primary_hi()) [[unlikely]] {
    size_ = 0;
    return Outcome::kGiveUp;
  }
  FastWalk::State at = {site.pc, site.cfa, site.rbp, false};
  size_t count = 0;         // of fresh_
  size_t cursor = size_;    // frames inside of it are passed: frames_[cursor - 1] is next
  StepReads reads;          // how `at` was found from the frame before

  for (;;) {
    while (cursor > 0 && frames_[cursor - 1].sp < at.sp) --cursor;
    if (cursor > 0) {
      RecordFrame& met = frames_[cursor - 1];
      if (met.sp == at.sp && met.pc == at.pc && (!met.needs_rbp || met.rbp == at.rbp)) {
        const size_t same = FirstDifference(cursor - 1);
        if (same == 0) {
          if (!walk.repeatable() || walk.window().hi != bounds->primary_hi() ||
              (marker_ == format::StackMarker::kNoUnwindInfo &&
               !walk.StillUnknown(frames_[0].pc))) [[unlikely]] {
            size_ = 0;
            return Outcome::kGiveUp;
          }
          // How this frame is reached may have changed; what it is has not.
          met.rbp = at.rbp;
          met.rbp_slot = reads.rbp_slot;
          met.cfa_slot = reads.cfa_slot;
          met.checks = static_cast<uint8_t>(
              (reads.cfa_slot != 0 ? kCheckCfa : 0) |
              (met.needs_rbp && reads.rbp_slot != 0 ? kCheckRbp : 0));
          Append(cursor, count);
          counters->frames_joined += cursor;
          counters->frames += count;
          ++(count == 0 ? counters->joined_whole : counters->joined_part);
          CountMarker(marker_, counters);
          return Outcome::kRecorded;
        }
        if (same < cursor - 1) {
          // Proven up to `same`, which is left by its rule below.
          if (count + (cursor - 1 - same) >= kMaxRecorded) [[unlikely]] {
            size_ = 0;
            return Outcome::kGiveUp;
          }
          const StepReads met_reads = reads;
          const size_t first = count;
          count = CopyUnchanged(cursor - 1, same, at.rbp, count, &at);
          fresh_[first].rbp_slot = met_reads.rbp_slot;
          fresh_[first].cfa_slot = met_reads.cfa_slot;
          reads.rbp_slot = frames_[same].rbp_slot;
          reads.cfa_slot = frames_[same].cfa_slot;
        }
        cursor = same;
      }
    }
    if (!walk.IsFrame(at.pc)) break;
    if (count == kMaxRecorded) [[unlikely]] {
      size_ = 0;
      return Outcome::kGiveUp;
    }
    RecordFrame& frame = fresh_[count++];
    frame.pc = at.pc;
    frame.sp = at.sp;
    frame.rbp = at.rbp;
    frame.rbp_slot = reads.rbp_slot;
    frame.cfa_slot = reads.cfa_slot;
    const FastWalk::Next next = walk.Step(&at, &frame.key, &reads);
    frame.rule_flags = reads.rule_flags;
    if (next == FastWalk::Next::kGoOn) [[likely]] continue;
    if (next == FastWalk::Next::kGeneric) {
      size_ = 0;
      return Outcome::kGiveUp;
    }
    break;
  }
  if (!walk.repeatable() || walk.window().hi != bounds->primary_hi()) [[unlikely]] {
    size_ = 0;
    return Outcome::kGiveUp;
  }
  marker_ = walk.marker();
  Append(0, count);
  counters->frames += count;
  ++counters->walked;
  CountMarker(marker_, counters);
  return Outcome::kRecorded;
}

}  // namespace memtrace::unwind
