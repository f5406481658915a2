#include "preload/unwind/stack_join.h"

#include <cstring>

#include "preload/unwind/module_epoch.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {
namespace {

// Frames of a walk that is truncated: in the middle of what may join it.
constexpr size_t kDeepest = (kMaxFrames + StackJoin::kMaxRecorded) / 2;

// So many frames are compared at once, where that many are left to compare: most stacks are
// shallower, and pay for one compare.
constexpr size_t kAtOnce = 8;
constexpr size_t kManyFrames = 64;

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

[[gnu::noinline]] bool StackJoin::FollowsBySlots(size_t outer) const {
  const Frame& frame = frames_[outer];
  if (checks_[outer] & kCheckCfa) {
    const uintptr_t added = frame.cfa_slot & 1 ? 8 : 0;
    if (WordAt(frame.cfa_slot & ~uintptr_t{1}) + added != returns_[outer].sp) return false;
  }
  return !(checks_[outer] & kCheckRbp) || WordAt(frame.rbp_slot) == frame.rbp;
}

// Was `outer` found from its inner frame by words that are still the same? All of
// them lie in the primary stack, which is readable for the thread's whole life.
[[gnu::always_inline]] inline bool StackJoin::Follows(size_t outer) const {
  if (WordAt(returns_[outer].sp - kReturnSlot) != returns_[outer].pc) return false;
  return (checks_[outer] & kCompared) == 0 || FollowsBySlots(outer);
}

// Frames outer to outer + kAtOnce - 1 by their return addresses, with one branch for all of them.
// False may also mean that one of them has more to compare.
[[gnu::always_inline]] inline bool StackJoin::FollowAtOnce(size_t outer) const {
  uint64_t checks;
  static_assert(sizeof checks == kAtOnce * sizeof checks_[0]);
  std::memcpy(&checks, checks_ + outer, sizeof checks);
  uint64_t differ = checks & kCompared * (~uint64_t{0} / 0xff);
  const Return* const frames = returns_ + outer;
#pragma GCC unroll kAtOnce
  for (size_t i = 0; i < kAtOnce; ++i) {
    differ |= WordAt(frames[i].sp - kReturnSlot) ^ frames[i].pc;
  }
  return differ == 0;
}

// Of many frames from `from` outwards, those that still follow from each other: returns the
// outermost that does, or one that fewer than kManyFrames are left of. A thousand frames of a deep
// recursion are compared at each event, and there the branches of each one count.
[[gnu::noinline]] size_t StackJoin::FirstDifferenceOfMany(size_t from) const {
  while (from >= kManyFrames) {
    if (FollowAtOnce(from - kAtOnce)) [[likely]] {
      from -= kAtOnce;
      continue;
    }
    for (const size_t to = from - kAtOnce; from > to; --from) {
      if (!Follows(from - 1)) return from;
    }
  }
  return from;
}

// The frames from `from` outwards that still follow from each other: returns the
// outermost that does.
[[gnu::always_inline]] inline size_t StackJoin::FirstDifference(size_t from) const {
  if (from >= kManyFrames) [[unlikely]] from = FirstDifferenceOfMany(from);
  while (from > 0 && Follows(from - 1)) --from;
  return from;
}

// Frames `from` down to `to` are on this stack but will not stay where they are in
// the record. Copies those inside of `to` to fresh_ and sets `at` to stand in `to`.
// rbp is read anew: where it did not matter for the old stack it was not compared.
size_t StackJoin::CopyUnchanged(size_t from, size_t to, uintptr_t rbp, size_t count,
                                FastWalk::State* at) {
  for (size_t i = from; i > to; --i) {
    fresh_[count] = {returns_[i], frames_[i]};
    fresh_[count].frame.rbp = rbp;
    ++count;
    if (frames_[i - 1].rbp_slot != 0) rbp = WordAt(frames_[i - 1].rbp_slot);
  }
  *at = {returns_[to].pc, returns_[to].sp, rbp, false};
  return count;
}

// Puts fresh_[0, count) inside of frames_[0, kept).
[[gnu::always_inline]] inline void StackJoin::Append(size_t kept, size_t count) {
  bool needs = kept > 0 && checks_[kept - 1] & kNeedsRbp;
  for (size_t i = kept; count > 0; ++i) {
    const FreshFrame& fresh = fresh_[--count];
    needs = NeedsRbp(fresh.frame.rule_flags, needs);
    returns_[i] = fresh.at;
    frames_[i] = fresh.frame;
    frames_[i].name = 0;
    checks_[i] = static_cast<uint8_t>((fresh.frame.cfa_slot != 0 ? kCheckCfa : 0) |
                                      (needs && fresh.frame.rbp_slot != 0 ? kCheckRbp : 0) |
                                      (needs ? kNeedsRbp : 0));
  }
}

void StackJoin::UseMemory(void* memory) {
  wants_memory_ = false;
  refused_ = memory == nullptr;
  if (refused_) return;
  auto* at = static_cast<char*>(memory);
  const auto take = [&at]<typename T>(T** array) {
    *array = reinterpret_cast<T*>(at);
    at += kMaxRecorded * sizeof(T);
  };
  take(&returns_);
  take(&frames_);
  take(&fresh_);
  take(&checks_);
  capacity_ = kMaxRecorded;
  size_ = 0;
}

StackJoin::Outcome StackJoin::Capture(const CallSite& site, StackBounds* bounds,
                                      UnwindCounters* counters) {
  wants_memory_ = false;
  const EpochWord epoch = CurrentEpoch();
  if (epoch.closing()) [[unlikely]] return GiveUp();
  if (epoch.word != epoch_word_) [[unlikely]] {
    size_ = 0;
    epoch_word_ = epoch.word;
  }
  FastWalk walk(bounds, counters, site.cfa);
  if (!bounds->IsPrimary(walk.window())) [[unlikely]] return GiveUp();
  FastWalk::State at = {site.pc, site.cfa, site.rbp, false};
  size_t count = 0;         // of fresh_
  size_t cursor = size_;    // frames inside of it are passed: cursor - 1 is next
  bool truncated = false;
  StepReads reads;          // how `at` was found from the frame before

  for (;;) {
    while (cursor > 0 && returns_[cursor - 1].sp < at.sp) --cursor;
    if (cursor > 0) {
      const size_t met = cursor - 1;
      if (returns_[met].sp == at.sp && returns_[met].pc == at.pc &&
          (!(checks_[met] & kNeedsRbp) || frames_[met].rbp == at.rbp)) {
        const size_t same = FirstDifference(met);
        if (same == 0) {
          const size_t size = cursor + count;
          if (size > capacity_ || (marker_ == format::StackMarker::kTruncated && size < kMaxFrames))
              [[unlikely]] {
            if (capacity_ == kUsual) return GiveUpForMemory();
            size_ = 0;  // and walk it anew
            return Capture(site, bounds, counters);
          }
          if (!walk.repeatable() || !bounds->IsPrimary(walk.window()) ||
              (marker_ == format::StackMarker::kNoUnwindInfo &&
               !walk.StillUnknown(returns_[0].pc))) [[unlikely]] {
            return GiveUp();
          }
          // How this frame is reached may have changed; what it is has not.
          Frame& frame = frames_[met];
          frame.rbp = at.rbp;
          frame.rbp_slot = reads.rbp_slot;
          frame.cfa_slot = reads.cfa_slot;
          const uint8_t needs = checks_[met] & kNeedsRbp;
          checks_[met] = static_cast<uint8_t>((reads.cfa_slot != 0 ? kCheckCfa : 0) |
                                              (needs && reads.rbp_slot != 0 ? kCheckRbp : 0) |
                                              needs);
          shared_ = cursor;
          size_ = cursor + count;
          Append(cursor, count);
          counters->frames_joined += cursor;
          counters->frames += count;
          ++(count == 0 ? counters->joined_whole : counters->joined_part);
          CountMarker(marker_, counters);
          return Outcome::kRecorded;
        }
        if (same < met) {
          // Proven up to `same`, which is left by its rule below.
          if (count + (met - same) >= capacity_) [[unlikely]] return GiveUpForMemory();
          const StepReads met_reads = reads;
          const size_t first = count;
          count = CopyUnchanged(met, same, at.rbp, count, &at);
          fresh_[first].frame.rbp_slot = met_reads.rbp_slot;
          fresh_[first].frame.cfa_slot = met_reads.cfa_slot;
          reads.rbp_slot = frames_[same].rbp_slot;
          reads.cfa_slot = frames_[same].cfa_slot;
        }
        cursor = same;
      }
    }
    if (!walk.IsFrame(at.pc)) break;
    if (count == capacity_) [[unlikely]] return GiveUpForMemory();
    if (count >= kDeepest) [[unlikely]] {
      truncated = true;
      break;
    }
    FreshFrame& fresh = fresh_[count++];
    fresh.at = {at.sp, at.pc};
    fresh.frame.rbp = at.rbp;
    fresh.frame.rbp_slot = reads.rbp_slot;
    fresh.frame.cfa_slot = reads.cfa_slot;
    const FastWalk::Next next = walk.Step(&at, &fresh.frame.key, &reads);
    fresh.frame.rule_flags = reads.rule_flags;
    if (next == FastWalk::Next::kGoOn) [[likely]] continue;
    if (next == FastWalk::Next::kGeneric) return GiveUp();
    break;
  }
  if (!walk.repeatable() || !bounds->IsPrimary(walk.window())) [[unlikely]] {
    return GiveUp();
  }
  marker_ = truncated ? format::StackMarker::kTruncated : walk.marker();
  shared_ = 0;
  size_ = count;
  Append(0, count);
  counters->frames += count;
  ++counters->walked;
  CountMarker(marker_, counters);
  return Outcome::kRecorded;
}

}  // namespace memtrace::unwind
