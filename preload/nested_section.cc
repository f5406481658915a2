#include "preload/nested_section.h"

#include <dlfcn.h>

#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/lifecycle.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/recording_switch.h"

namespace memtrace {
namespace {

void Fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// The code of this library, whichever way it was linked.
struct OwnCode {
  uintptr_t begin = 0, end = 0;
  bool Has(uintptr_t pc) const { return pc - begin < end - begin; }
};

bool IsTrampoline(uintptr_t pc) {
  // All of it in the page that the frame's pc is in.
  if ((pc & (arch::kPageBytes - 1)) > arch::kPageBytes - arch::kTrampolineBytes) return true;
  return arch::IsSignalTrampoline(reinterpret_cast<const uint8_t*>(pc));
}

// Is the call that leads here made outside of handlers and of the tracer?
[[gnu::noinline]] bool CallIsOutermost(ThreadState& state, uint64_t* keys) {
  dl_find_object object;
  if (_dl_find_object(reinterpret_cast<void*>(&CallIsOutermost), &object) != 0) return false;
  const OwnCode own = {reinterpret_cast<uintptr_t>(object.dlfo_map_start),
                       reinterpret_cast<uintptr_t>(object.dlfo_map_end)};
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const unwind::CallSite here = {reinterpret_cast<uintptr_t>(__builtin_return_address(0)),
                                 frame + arch::kFrameAddressToCfa,
                                 *reinterpret_cast<const uintptr_t*>(frame)};
  // May be done on the object of a section that was interrupted: see stack_unwinder.h.
  const unwind::UnwindResult stack = state.unwinder.Capture(here, keys, unwind::kMaxFrames);
  if (stack.marker != format::StackMarker::kNone) return false;
  size_t i = 0;
  while (i < stack.frames && own.Has(unwind::PcOf(keys[i]) - 1)) ++i;
  for (; i < stack.frames; ++i) {
    const uintptr_t pc = unwind::PcOf(keys[i]) - 1;
    if (own.Has(pc) || IsTrampoline(pc)) return false;
  }
  return true;
}

// Takes the sections back that were left for good. See the head of nested_section.h. True: the one
// of the thread's own state is among them.
[[gnu::noinline]] bool RecoverAbandoned(uintptr_t top) {
  ThreadState* const state = t_slot.state;
  // First what is cheap: a coroutine may go on for long after a jump, and nothing
  // can be proven there.
  if (!state->unwinder.MayBePrimary(top)) return false;
  const auto may_be_left = [&](uintptr_t frame) {
    return frame < top && state->unwinder.MayBePrimary(frame);
  };
  bool any = t_slot.mode == ThreadMode::kInside && may_be_left(t_slot.section_frame);
  for (ThreadState* each = state->for_handlers; each != nullptr; each = each->for_handlers) {
    any |= each->in_use && may_be_left(each->section_frame);
  }
  if (!any) return false;

  constexpr size_t kBytes = unwind::kMaxFrames * sizeof(uint64_t);
  auto* const keys = static_cast<uint64_t*>(OwnMap(kBytes, /*touch=*/false));
  if (keys == nullptr) return false;
  const bool outermost = CallIsOutermost(*state, keys);
  OwnUnmap(keys, kBytes);
  if (!outermost) return false;
  // Not before: what was not unwound yet is not known to be of it.
  const unwind::StackWindow primary = state->unwinder.primary_stack();
  if (!primary.Contains(top)) return false;
  const auto may_be_gone = [&](uintptr_t frame) { return frame < top && primary.Contains(frame); };
  OtherCalls::TakeBack();
  OwnFaultsScope::ForgetOwn();
  for (ThreadState* each = state->for_handlers; each != nullptr; each = each->for_handlers) {
    if (!each->in_use || !may_be_gone(each->section_frame)) continue;
    g_process.abandoned_events.fetch_add(1, std::memory_order_relaxed);
    RecoverThread(*each);
    Fence();
    each->in_use = false;
  }
  if (t_slot.mode != ThreadMode::kInside || !may_be_gone(t_slot.section_frame)) return false;
  g_process.abandoned_events.fetch_add(1, std::memory_order_relaxed);
  RecoverThread(*state);
  Fence();
  t_slot.mode = g_process.config.sample_bytes != 0 ? ThreadMode::kSampling : ThreadMode::kRecording;
  return true;
}

}  // namespace

ThreadState* OpenNestedSection(uintptr_t top, ThreadMode* before) {
  if (t_slot.mode == ThreadMode::kOwnCalls) return nullptr;
  // The section that was interrupted may have been about to begin the trace of a fork child, and a
  // handler may have jumped out of it: then nobody else would. Had it begun, signals would be
  // blocked.
  if (g_switch.recording.load(std::memory_order_relaxed) == 0 && !EnsureRecording()) return nullptr;
  // The section that was interrupted may not have got as far.
  ThreadState* state = t_slot.state != nullptr ? t_slot.state : AttachThread();
  if (state == nullptr) {
    CountMissedEvent();
    return nullptr;
  }
  if (RecoverAbandoned(top)) {  // this is no handler's
    *before = t_slot.mode;
    t_slot.section_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    Fence();
    t_slot.mode = ThreadMode::kInside;
    Fence();
    return state;
  }
  for (int level = 0; level < kMostNested; ++level) {
    ThreadState* next = state->for_handlers;
    if (next == nullptr) next = AttachForHandlers(*state);
    if (next == nullptr) break;
    if (!next->in_use) {
      // A handler that comes before this is done with the state when it returns.
      next->section_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
      Fence();
      next->in_use = true;
      Fence();
      // Far from the one before: it has a time of its own.
      next->events_to_stamp = 1;
      return next;
    }
    state = next;
  }
  CountMissedEvent();
  return nullptr;
}

void CloseNestedSection(ThreadState& state) {
  Fence();
  state.in_use = false;
}

}  // namespace memtrace
