#include "preload/unwind/stack_unwinder.h"

#include <cstring>

#include "preload/unwind/arch_x86_64.h"
#include "preload/unwind/cfi_unwinder.h"
#include "preload/unwind/frame_rule.h"
#include "preload/unwind/rule_table.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

// Frames between CaptureGeneric() and the caller of the interposed function.
constexpr int kMaxOwnFrames = 32;

constexpr uint64_t Key(uintptr_t pc, uint16_t tag) { return pc | static_cast<uint64_t>(tag) << 48; }

}  // namespace

// A walk by rules. What changes with every frame is a State and stays in machine
// registers while the walk is in its loop; the rare steps get and give it by value.
class FastWalk {
 public:
  FastWalk(StackUnwinder* owner, uintptr_t sp)
      : owner_(owner), window_(owner->bounds_.Enter(sp)) {}

  // False: a rule needs more registers than these. The frames up to there are
  // written, and true; the generic unwinder writes them again.
  inline bool Run(const CallSite& site, uint64_t* keys, size_t max,
                                  UnwindResult* result);

 private:
  struct State {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t rbp;
    bool exact;  // pc was interrupted by a signal
  };
  enum class Next : uint8_t { kGoOn, kEnd, kMarked, kGeneric };

  [[gnu::noinline]] uint64_t Miss(uintptr_t pc, bool exact, uint64_t* key);
  [[gnu::noinline]] Next Unusual(FrameRule rule, State* state);
  [[gnu::noinline]] bool MoveWindow(uintptr_t address) {
    return owner_->bounds_.Move(address, &window_);
  }
  bool Read(uintptr_t address, uint64_t* value) {
    if (!window_.Contains(address) && !MoveWindow(address)) return false;
    memcpy(value, reinterpret_cast<const void*>(address), sizeof(*value));
    return true;
  }
  Next Mark(StackMarker marker) {
    marker_ = marker;
    return Next::kMarked;
  }

  StackUnwinder* const owner_;
  StackWindow window_;
  StackMarker marker_ = StackMarker::kNone;
};

// Reads the CFI of the pc. Returns the packed rule and keeps it, or 0: no rule,
// marker_ says why.
uint64_t FastWalk::Miss(uintptr_t pc, bool exact, uint64_t* key) {
  ++owner_->counters_.rule_misses;
  CfiImage image;
  CfiRow row;
  const Resolution found = ResolveRule({pc, exact}, &image, &row);
  *key = Key(0, found.tag);
  if (found.status != CfiStatus::kOk) {
    marker_ = found.status == CfiStatus::kUnsupported ? StackMarker::kUnsupported
                                                      : StackMarker::kNoUnwindInfo;
    return 0;
  }
  if (found.cacheable && RuleTable::Insert(RuleTable::Lookup(pc, exact), found.tag, found.rule) ==
                             RuleTable::Inserted::kFull) {
    ++owner_->counters_.table_full;
  }
  return found.rule.Packed();
}

FastWalk::Next FastWalk::Unusual(FrameRule rule, State* state) {
  if (rule.flags & kGeneric) return Next::kGeneric;
  if (rule.flags & kEnd) return Next::kEnd;
  if (rule.flags & kContextEnd) return Mark(StackMarker::kContextEnd);
  if (rule.flags & kProcessEntry) {
    return IsProcessEntry(state->sp) ? Next::kEnd : Mark(StackMarker::kNoUnwindInfo);
  }
  if (rule.flags & kSignal) {
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
    window_ = owner_->bounds_.Enter(outer.sp);  // the handler may have had its own stack
    return Next::kGoOn;
  }
  // kCfaLoaded, kRbpFromRbp
  uintptr_t cfa = (rule.flags & kCfaFromRbp ? state->rbp : state->sp) +
                  static_cast<uintptr_t>(int64_t{rule.cfa_offset});
  if (rule.flags & kCfaLoaded) {
    if (!Read(cfa, &cfa)) return Mark(StackMarker::kUnreadable);
    if (rule.flags & kCfaPlus8) cfa += 8;
  }
  if (cfa % 8 != 0 || cfa - 8 < state->sp) return Mark(StackMarker::kInconsistent);
  if (!Read(cfa - 8, &state->pc)) return Mark(StackMarker::kUnreadable);
  if (rule.flags & kRbpSaved) {
    const uintptr_t base = rule.flags & kRbpFromRbp ? state->rbp : cfa;
    const uintptr_t slot = base + static_cast<uintptr_t>(int64_t{rule.rbp_words} * 8);
    if (!Read(slot, &state->rbp)) return Mark(StackMarker::kUnreadable);
  }
  state->sp = cfa;
  state->exact = false;
  return Next::kGoOn;
}

bool FastWalk::Run(const CallSite& site, uint64_t* keys, size_t max, UnwindResult* result) {
  const RuleTable& table = RuleTable::Instance();
  State at = {site.pc, site.cfa, site.rbp, false};
  size_t count = 0;
  Next next = Next::kGoOn;
  for (;;) {
    if (at.pc >> kAddressBits != 0 || at.pc == 0) [[unlikely]] {
      Mark(at.pc == 0 ? StackMarker::kNoUnwindInfo : StackMarker::kInconsistent);
      break;
    }
    if (count == max) [[unlikely]] {
      Mark(StackMarker::kTruncated);
      break;
    }
    const uint64_t lookup = RuleTable::Lookup(at.pc, at.exact);
    uint64_t key;
    uint64_t packed = table.Find(lookup, &key);
    if (packed == 0) [[unlikely]] packed = Miss(at.pc, at.exact, &key);
    const FrameRule rule = FrameRule::Unpacked(packed);
    keys[count++] = Key(at.pc + at.exact, RuleTable::TagOf(key));
    if (packed == 0) [[unlikely]] break;
    if (rule.flags & kUnusual) [[unlikely]] {
      if ((rule.flags & (kSignal | kContextEnd)) != 0 && !at.exact) ++keys[count - 1];
      State outer = at;
      next = Unusual(rule, &outer);
      if (next != Next::kGoOn) break;
      at = outer;
      continue;
    }
    const uintptr_t cfa = (rule.flags & kCfaFromRbp ? at.rbp : at.sp) +
                          static_cast<uintptr_t>(int64_t{rule.cfa_offset});
    // The return address lies in this frame: at or above its stack pointer.
    const uintptr_t slot = cfa - 8;
    if (slot % 8 != 0 || slot < at.sp) [[unlikely]] {
      Mark(StackMarker::kInconsistent);
      break;
    }
    if (!window_.ContainsAligned(slot) && !MoveWindow(slot)) [[unlikely]] {
      Mark(StackMarker::kUnreadable);
      break;
    }
    at.pc = *reinterpret_cast<const uint64_t*>(slot);
    if (rule.flags & kRbpSaved) {
      const uintptr_t saved = cfa + static_cast<uintptr_t>(int64_t{rule.rbp_words} * 8);
      if (!window_.ContainsAligned(saved) && !MoveWindow(saved)) [[unlikely]] {
        Mark(StackMarker::kUnreadable);
        break;
      }
      at.rbp = *reinterpret_cast<const uint64_t*>(saved);
    }
    at.sp = cfa;
    at.exact = false;
  }
  result->frames = count;
  result->marker = marker_;
  return next != Next::kGeneric;
}

UnwindResult StackUnwinder::Capture(const CallSite& site, uint64_t* keys, size_t max) {
  if (max > kMaxFrames) max = kMaxFrames;
  UnwindResult result;
  // The memo (is this the stack of a known record?) and the join (from which frame
  // on is it the last one?) belong here, before the walk.
  if (FastWalk(this, site.cfa).Run(site, keys, max, &result)) [[likely]] {
    ++counters_.walked;
  } else {
    ++counters_.generic;
    if (!CaptureGeneric(site, keys, max, &result)) result.marker = StackMarker::kUnsupported;
  }
  counters_.frames += result.frames;
  if (result.marker != StackMarker::kNone && result.marker != StackMarker::kContextEnd) {
    ++counters_.marked;
  }
  return result;
}

// Begins in its own frame, for only there all registers are known, and drops what
// lies inside the tracer. False: that could not be left, and nothing was written.
[[gnu::noinline]] bool StackUnwinder::CaptureGeneric(const CallSite& site, uint64_t* keys,
                                                     size_t max, UnwindResult* result) {
  CfiUnwinder walk(CurrentRegisters(), &bounds_);
  FrameInfo info;
  for (int own = 0; walk.pc() != site.pc || walk.sp() != site.cfa; ++own) {
    if (own == kMaxOwnFrames || walk.sp() > site.cfa) return false;
    if (walk.Step(&info) != StepResult::kStepped) return false;
  }
  *result = UnwindResult{};
  for (;;) {
    if (result->frames == max) {
      result->marker = StackMarker::kTruncated;
      return true;
    }
    const uintptr_t pc = walk.pc();
    const bool exact = walk.exact();
    const StepResult step = walk.Step(&info);
    keys[result->frames++] = Key(pc + (exact || info.trampoline), info.tag);
    if (step == StepResult::kEnd) return true;
    if (step == StepResult::kMarked) {
      result->marker = walk.marker();
      return true;
    }
  }
}

}  // namespace memtrace::unwind
