// StreamState: what the stacks of one event stream mean, and the one place that
// turns slots into StackIds. Shared by the analyzer and the dump.

#ifndef MEMTRACE_REPORT_MODEL_STREAM_STATE_H_
#define MEMTRACE_REPORT_MODEL_STREAM_STATE_H_

#include <algorithm>
#include <cstdint>

#include "format/event_words.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {

class StreamState {
 public:
  // kPath: its words. Slots beyond the highest there can be are left out.
  void Define(const uint64_t* words, StackTable* stacks) {
    const uint32_t parent_slot = format::PathParent(words[0]);
    const uint32_t nodes = format::PathNodes(words[0]);
    uint32_t slot = format::PathFirst(words[0]);
    StackId id = parent_slot == format::kNoSlot ? StackId{} : StackOf(parent_slot, stacks);
    if (nodes > 1) stacks->Prefetch(id, {words + 1, nodes});
    for (uint32_t i = 1; i <= nodes && slot <= format::kMaxSlot; ++i, ++slot) {
      id = stacks->Intern(id, format::NodePc(words[i]), format::NodeInstance(words[i]));
      slots_.Set(slot, id);
      last_slot_ = slot;
    }
    lost_words_ = 0;
  }

  StackId StackOf(uint32_t slot, StackTable* stacks) const {
    if (slot == format::kNoSlot) return StackId{};
    const StackId stack = slot <= format::kMaxSlot ? slots_.Get(slot) : StackId{};
    if (stack) [[likely]]
      return stack;
    if (slot == format::kStoppedSlot) return StackId{};
    // Defined in a block that was lost. A guess would be another stack.
    return stacks->Intern({}, static_cast<uint64_t>(format::StackMarker::kLost), format::kNoModule);
  }

  // Blocks of the thread were lost here, with `words` words at most. `next`: what the first path
  // behind them defines first; 0: none is known. As slots are given out in turn, what those on the
  // way there meant is not known any more, and what all others mean is.
  void ForgetLost(uint64_t words, uint32_t next) {
    lost_words_ += words;
    if (last_slot_ == 0) return;
    if (last_slot_ > kSlotsInTurn || next > kSlotsInTurn) return;  // none is given out twice
    const uint64_t most = lost_words_ + format::kMaxPathNodes;
    const uint64_t count = next != 0 ? (next + kSlotsInTurn - last_slot_ - 1) % kSlotsInTurn : most;
    // Perhaps more than once around; or they were not given out in turn.
    if (lost_words_ > kSlotsInTurn || count >= kSlotsInTurn || count > most) return slots_.Clear();
    if (count == 0) return;
    const uint64_t first = last_slot_ + 1, last = last_slot_ + count;
    slots_.Forget(static_cast<uint32_t>(first),
                  static_cast<uint32_t>(std::min<uint64_t>(last, kSlotsInTurn)));
    if (last > kSlotsInTurn) slots_.Forget(1, static_cast<uint32_t>(last - kSlotsInTurn));
  }
  // The stream is at its end.
  void Clear() { *this = {}; }

  // docs/trace-format.md, Stacks.
  static constexpr uint64_t kSlotsInTurn = 1 << 18;

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  SlotMap slots_;
  uint32_t last_slot_ = 0;   // that was defined; 0: none was
  uint64_t lost_words_ = 0;  // since then, in any number of holes
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_STREAM_STATE_H_
