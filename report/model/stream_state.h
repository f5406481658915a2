// StreamState: what the stacks of one event stream mean, and the one place that
// turns slots into StackIds. Shared by the analyzer and the dump.

#ifndef MEMTRACE_REPORT_MODEL_STREAM_STATE_H_
#define MEMTRACE_REPORT_MODEL_STREAM_STATE_H_

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
    }
  }

  StackId StackOf(uint32_t slot, StackTable* stacks) const {
    if (slot == format::kNoSlot) return StackId{};
    const StackId stack = slot <= format::kMaxSlot ? slots_.Get(slot) : StackId{};
    if (stack) [[likely]] return stack;
    if (slot == format::kStoppedSlot) return StackId{};
    // Defined in a block that was lost. A guess would be another stack.
    return stacks->Intern({}, static_cast<uint64_t>(format::StackMarker::kLost), format::kNoModule);
  }

  void Forget() { slots_.Clear(); }

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  SlotMap slots_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_STREAM_STATE_H_
