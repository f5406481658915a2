#include "preload/unwind/fast_walk.h"

#include "preload/unwind/module_epoch.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {

using format::StackMarker;

// Reads the CFI of the pc. Returns the packed rule and keeps it, or 0: no rule,
// marker_ says why.
uint64_t FastWalk::Miss(uintptr_t pc, bool exact, uint64_t* key) {
  ++counters_->rule_misses;
  CfiImage image;
  CfiRow row;
  const Resolution found = ResolveRule({pc, exact}, &image, &row);
  *key = FrameKey(0, found.tag);
  const bool keep = found.cacheable && found.tag != kNoTag;
  const uint64_t lookup = RuleTable::Lookup(pc, exact);
  if (found.status != CfiStatus::kOk) {
    if (found.status == CfiStatus::kNoFde && found.has_cfi && keep && !exact) {
      RuleTable::Insert(lookup, found.tag, {0, 0, kValid | kNoInfo});
    }
    marker_ = found.status == CfiStatus::kUnsupported ? StackMarker::kUnsupported
                                                      : StackMarker::kNoUnwindInfo;
    if (exact || marker_ != StackMarker::kNoUnwindInfo) repeatable_ = false;
    return 0;
  }
  if (!keep || (found.tag != kPermanentTag && ClosesAreUnseen())) repeatable_ = false;
  if (keep && RuleTable::Insert(lookup, found.tag, found.rule) == RuleTable::Inserted::kFull) {
    ++counters_->table_full;
  }
  return found.rule.Packed();
}

bool FastWalk::StillUnknown(uintptr_t pc) {
  uint64_t key;
  const uint64_t rule = RuleTable::Instance().Find(RuleTable::Lookup(pc, false), &key);
  if (rule != 0) return (FrameRule::Unpacked(rule).flags & kNoInfo) != 0;
  return Miss(pc, false, &key) == 0 && marker_ == StackMarker::kNoUnwindInfo;
}

FastWalk::Next FastWalk::Unusual(FrameRule rule, State* state, StepReads* reads) {
  if (rule.flags & kAskedFor) repeatable_ = false;
  reads->rule_flags = rule.flags;  // an end has none that would ask for rbp
  if (rule.flags & kGeneric) return Next::kGeneric;
  if (rule.flags & kEnd) return Next::kEnd;
  if (rule.flags & kContextEnd) return Mark(StackMarker::kContextEnd);
  if (rule.flags & kNoInfo) return Mark(StackMarker::kNoUnwindInfo);
  if (rule.flags & kProcessEntry) {
    return IsProcessEntry(state->sp) ? Next::kEnd : MarkOnce(StackMarker::kNoUnwindInfo);
  }
  if (rule.flags & kSignal) {
    repeatable_ = false;
    State outer;
    if (!Read(state->sp + kUcontextOffset[kRip], &outer.pc) ||
        !Read(state->sp + kUcontextOffset[kRsp], &outer.sp) ||
        !Read(state->sp + kUcontextOffset[kRbp], &outer.rbp)) {
      return Mark(StackMarker::kUnreadable);
    }
    outer.exact = true;
    if (outer.sp % 8 != 0 || (outer.pc == state->pc && outer.sp == state->sp)) {
      return Mark(StackMarker::kInconsistent);
    }
    *state = outer;
    window_ = bounds_->Enter(outer.sp);  // the handler may have had its own stack
    return Next::kGoOn;
  }
  // kCfaLoaded, kRbpFromRbp
  uintptr_t cfa = (rule.flags & kCfaFromRbp ? state->rbp : state->sp) +
                  static_cast<uintptr_t>(int64_t{rule.cfa_offset});
  if (rule.flags & kCfaLoaded) {
    if (cfa % 8 != 0) repeatable_ = false;
    reads->cfa_slot = cfa | (rule.flags & kCfaPlus8 ? 1 : 0);
    if (!Read(cfa, &cfa)) return MarkOnce(StackMarker::kUnreadable);
    if (rule.flags & kCfaPlus8) cfa += 8;
  }
  if (cfa % 8 != 0 || (cfa - kReturnSlot < state->sp && !LeavesStack(rule, cfa - kReturnSlot))) {
    return MarkOnce(StackMarker::kInconsistent);
  }
  if (!Read(cfa - kReturnSlot, &state->pc)) return MarkOnce(StackMarker::kUnreadable);
  if (rule.flags & kRbpSaved) {
    const uintptr_t base = rule.flags & kRbpFromRbp ? state->rbp : cfa;
    const uintptr_t slot = base + static_cast<uintptr_t>(int64_t{rule.rbp_words} * 8);
    if (slot % 8 != 0) repeatable_ = false;
    if (!Read(slot, &state->rbp)) return MarkOnce(StackMarker::kUnreadable);
    reads->rbp_slot = slot;
  }
  state->sp = cfa;
  state->exact = false;
  return Next::kGoOn;
}

}  // namespace memtrace::unwind
