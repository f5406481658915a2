#include "preload/unwind/stack_memo.h"

namespace memtrace::unwind {

void StackMemo::Learn(Entry* entry, const CallSite& site, const StackJoin& join, uint64_t stack) {
  if (entry->pc != site.pc || entry->sp != site.cfa) {
    // First sight: the entry's stack makes room, for it has not come again since.
    entry->pc = site.pc;
    entry->sp = site.cfa;
    entry->words = 0;
    return;
  }
  const RecordFrame* const frames = join.frames();
  const size_t size = join.size();
  const format::StackMarker marker = join.marker();
  entry->words = 0;
  if (size < 2 || size > kMaxWords ||
      (marker != format::StackMarker::kNone && marker != format::StackMarker::kContextEnd)) {
    return;
  }
  uint32_t words = 0;
  bool fits = true;
  const auto add = [&](uintptr_t address, uint64_t value) {
    const uintptr_t offset = address - site.cfa;
    if (words == kMaxWords || offset > UINT32_MAX) {
      fits = false;
      return;
    }
    entry->offset[words] = static_cast<uint32_t>(offset);
    entry->value[words] = value;
    ++words;
  };
  for (size_t i = size - 1; i > 0 && fits; --i) {
    const RecordFrame& outer = frames[i - 1];
    add(outer.sp - 8, outer.pc);
    if (outer.checks & StackJoin::kCheckCfa) {
      add(outer.cfa_slot & ~uintptr_t{1}, outer.sp - (outer.cfa_slot & 1 ? 8 : 0));
    }
    if (outer.checks & StackJoin::kCheckRbp) add(outer.rbp_slot, outer.rbp);
  }
  if (!fits) return;
  entry->rbp = site.rbp;
  entry->needs_rbp = frames[size - 1].needs_rbp != 0;
  entry->epoch_word = join.epoch_word();
  entry->stack = stack;
  entry->words = words;
}

void StackMemo::Forget() {
  const size_t entries = size_t{1} << (64 - shift_);
  for (size_t i = 0; i < entries; ++i) {
    // A page that was never touched stays so.
    if (committed(PageOf(reinterpret_cast<uintptr_t>(&entries_[i])))) entries_[i].pc = 0;
  }
}

}  // namespace memtrace::unwind
