// CaptureStack(): the stack of a call as a slot that the trace knows. What the trace does
// not know yet is defined first: the part of the stack that is new, as one path.

#include "preload/cross_check.h"
#include "preload/own_memory.h"
#include "preload/recorder.h"

namespace memtrace {
namespace {

// Defines the `nodes` that `key(i)` gives, outermost first, below the node `parent`,
// which is held; the marker, if any, comes before them. There is room. Returns the
// node of the first key, or of the marker if that is all.
template <typename Key>
[[gnu::always_inline]] inline uint64_t DefinePath(ThreadState& state, uint64_t parent,
                                                  format::StackMarker marker, size_t nodes,
                                                  Key key) {
  const size_t marks = marker != format::StackMarker::kNone;
  const auto count = static_cast<uint32_t>(nodes + marks);
  const uint64_t first = state.slots.Define(count);
  uint64_t* words = state.ring.next();
  words[0] = format::PathHead(StackSlots::SlotOf(parent), StackSlots::SlotOf(first), count);
  if (marks != 0) [[unlikely]] {
    words[1] = format::NodeWord(static_cast<uint64_t>(marker), format::kNoModule);
  }
  uint64_t* const out = words + 1 + marks;
  for (size_t i = 0; i < nodes; ++i) out[i] = key(i);  // a frame key is a node's word
  state.ring.Commit(1 + count);
  return first + marks;
}
static_assert(unwind::StackJoin::kMaxRecorded + 1 <= format::kMaxPathNodes);

// A stack of its own, from its outermost frame. What it has in common with the last such
// stack has its nodes.
[[gnu::noinline]] uint64_t WalkStack(ThreadState& state, const CallSite& site) {
  const unwind::UnwindResult result =
      state.unwinder.Capture(site, state.keys, unwind::kMaxFrames);
  const size_t marks = result.marker != format::StackMarker::kNone;
  const size_t size = result.frames + marks;
  if (size == 0) return 0;
  const auto word = [&](size_t i) {
    return i < marks ? format::NodeWord(static_cast<uint64_t>(result.marker), format::kNoModule)
                     : state.keys[size - 1 - i];
  };
  if (!state.ring.HasRoom(1 + size)) SpoolThread(state);
  ThreadState::WalkedFrame* const walked = state.walked;
  size_t known = 0;
  while (known < size && known < state.walked_size && walked[known].word == word(known)) ++known;
  if (known > 0 && !state.slots.Holds(walked[known - 1].node)) known = 0;
  if (known == size) return walked[size - 1].node;
  uint64_t node = DefinePath(state, known > 0 ? walked[known - 1].node : 0,
                             format::StackMarker::kNone, size - known,
                             [&](size_t i) { return word(known + i); });
  for (size_t i = known; i < size; ++i) walked[i] = {word(i), node++};
  state.walked_size = size;
  return node - 1;
}

// For stacks of more than 512 frames, which most threads never have.
[[gnu::noinline]] bool GiveMemory(unwind::StackJoin* join) {
  void* const memory = OwnMap(unwind::StackJoin::memory_bytes(), /*touch=*/false);
  join->UseMemory(memory);
  return memory != nullptr;
}

// Not the stack of a known record: joins the last one, or walks.
[[gnu::noinline]] uint64_t JoinStack(ThreadState& state, const CallSite& site) {
  unwind::StackJoin& join = state.join;
  using Outcome = unwind::StackJoin::Outcome;
  if (state.unwinder.Join(site, &join) != Outcome::kRecorded) [[unlikely]] {
    if (!join.wants_memory() || !GiveMemory(&join) ||
        state.unwinder.Join(site, &join) != Outcome::kRecorded) {
      return WalkStack(state, site);
    }
  }
  const size_t size = join.size();
  if (!state.ring.HasRoom(2 + size)) [[unlikely]] SpoolThread(state);
  // The frames that are shared with the last stack have their nodes, unless their slots
  // are used again by now. The innermost of them stands for all: what it is was said
  // when it was defined.
  size_t known = join.shared();
  uint64_t parent = 0;
  format::StackMarker marker = format::StackMarker::kNone;
  if (known > 0 && state.slots.Holds(join.name(known - 1))) [[likely]] {
    parent = join.name(known - 1);
  } else {
    known = 0;
    marker = join.marker();
  }
  uint64_t node = parent;
  if (known < size) {
    node = DefinePath(state, parent, marker, size - known,
                      [&](size_t i) { return join.key(known + i); }) - 1;
    for (size_t i = known; i < size; ++i) join.set_name(i, ++node);
  }
  if (const uint32_t faults = state.memo.Learn(site, join, node)) CountOwnMinorFaults(faults);
  return node;
}

// MEMTRACE_STACKS=off: the caller alone, which costs nothing.
[[gnu::noinline]] uint64_t CallerAlone(ThreadState& state, const CallSite& site) {
  if (state.slots.Holds(state.caller_node) && state.caller_pc == site.pc) return state.caller_node;
  if (!state.ring.HasRoom(2)) SpoolThread(state);
  state.caller_pc = site.pc;
  state.caller_node = DefinePath(state, 0, format::StackMarker::kNone, 1,
                                 [&](size_t) { return uint64_t{site.pc}; });
  return state.caller_node;
}

[[gnu::always_inline]] inline uint64_t CaptureUsually(ThreadState& state, const CallSite& site) {
  const unwind::StackMemo::Entry* const known =
      state.memo.Find(site, state.unwinder.primary_stack());
  if (known != nullptr && state.slots.Holds(known->stack)) [[likely]] {
    state.unwinder.CountMemoHit();
    return known->stack;
  }
  return JoinStack(state, site);
}

// Captures the stack in the way that the MEMTRACE_ variables ask for.
[[gnu::noinline]] uint64_t CaptureAsConfigured(ThreadState& state, const CallSite& site) {
  const Config& config = g_process.config;
  if (!config.stacks) return CallerAlone(state, site);
  CrossCheck* const check = config.cross_check != 0 ? CrossCheck::Begin(state) : nullptr;
  const uint64_t node = config.join ? CaptureUsually(state, site) : WalkStack(state, site);
  if (check != nullptr) check->Finish(state, site, StackSlots::SlotOf(node));
  return node;
}

}  // namespace

uint32_t CaptureStack(ThreadState& state, const CallSite& site) {
  if (!g_process.config.usual_stacks) [[unlikely]] {
    return StackSlots::SlotOf(CaptureAsConfigured(state, site));
  }
  return StackSlots::SlotOf(CaptureUsually(state, site));
}

}  // namespace memtrace
