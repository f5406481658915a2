#include "preload/unwind/stack_unwinder.h"

#include <cstring>

#include "preload/arch/arch.h"
#include "preload/unwind/cfi_unwinder.h"
#include "preload/unwind/fast_walk.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

// Frames between CaptureGeneric() and the caller of the interposed function.
constexpr int kMaxOwnFrames = 32;

}  // namespace

UnwindResult StackUnwinder::Capture(const CallSite& site, uint64_t* keys, size_t max) {
  if (max > kMaxFrames) max = kMaxFrames;
  UnwindResult result;
  FastWalk walk(&bounds_, &counters_, site.cfa);
  FastWalk::State at = {site.pc, site.cfa, site.rbp, false};
  FastWalk::Next next = FastWalk::Next::kGoOn;
  StepReads reads;
  while (next == FastWalk::Next::kGoOn && walk.IsFrame(at.pc)) {
    if (result.frames == max) [[unlikely]] {
      walk.Truncate();
      break;
    }
    next = walk.Step(&at, &keys[result.frames++], &reads);
  }
  result.marker = walk.marker();
  if (next != FastWalk::Next::kGeneric) [[likely]] {
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
    keys[result->frames++] = FrameKey(pc + (exact || info.trampoline), info.tag);
    if (step == StepResult::kEnd) return true;
    if (step == StepResult::kMarked) {
      result->marker = walk.marker();
      return true;
    }
  }
}

}  // namespace memtrace::unwind
