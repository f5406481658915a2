#include "preload/unwind/stack_memo.h"

namespace memtrace::unwind {

uint32_t StackMemo::Learn(const CallSite& site, const StackJoin& join, uint64_t stack) {
  // Complete, and the thread's own: the memory of a context may go away, and a branch
  // reads words before the entry's have proven that they are there.
  if (join.marker() != format::StackMarker::kNone) return 0;
  const size_t index = SetOf(leaf_);
  const uint32_t faults = Commit(index);
  Set& set = sets_[index];
  Entry* const entries = &entries_[index * 2];
  const auto leaf = static_cast<uint32_t>(leaf_);
  const auto is_here = [&](const Entry& entry) {
    return entry.words != 0 && entry.leaf == leaf && entry.pc == site.pc && entry.sp == site.cfa;
  };
  const bool first = is_here(entries[0]), second = is_here(entries[1]);
  if (set.seen != leaf && !first && !second) {
    set.seen = leaf;
    return faults;
  }
  uint8_t victim = set.used ^ 1;
  if (first && second) {
    const uint16_t offset = Difference(entries[victim], site, join);
    if (offset != 0) {
      // The two wait for the next time they are asked for: their leaves are elsewhere now.
      branches_[BranchOf(leaf_)] = {leaf, offset};
      entries[0].words = entries[1].words = 0;
      return faults;
    }
  }
  if (entries[set.used].words == 0) victim = set.used;
  if (Fill(&entries[victim], site, join, stack)) {
    entries[victim].leaf = leaf;
    set.used = victim;
  }
  return faults;
}

uint16_t StackMemo::Difference(const Entry& entry, const CallSite& site, const StackJoin& join) {
  uint16_t branch = 0;
  uint32_t i = 0;
  join.ForEachWord([&](uintptr_t address, uint64_t value) {
    const uintptr_t offset = (address - site.cfa) / 8;
    if (i == entry.words || entry.offset[i] != offset) return false;
    if (entry.value[i] != value) {
      branch = static_cast<uint16_t>(offset);
      return false;
    }
    ++i;
    return true;
  });
  return branch;
}

bool StackMemo::Fill(Entry* entry, const CallSite& site, const StackJoin& join, uint64_t stack) {
  entry->words = 0;
  if (join.size() < 2 || join.size() > kMaxWords) return false;
  uint32_t words = 0;
  bool fits = true;
  join.ForEachWord([&](uintptr_t address, uint64_t value) {
    const uintptr_t offset = address - site.cfa;
    fits = words < kMaxWords && offset % 8 == 0 && offset / 8 <= UINT16_MAX;
    if (fits) {
      entry->offset[words] = static_cast<uint16_t>(offset / 8);
      entry->value[words] = value;
      ++words;
    }
    return fits;
  });
  if (!fits) return false;
  entry->pc = site.pc;
  entry->sp = site.cfa;
  entry->rbp = site.rbp;
  entry->needs_rbp = join.needs_rbp();
  entry->epoch_word = join.epoch_word();
  entry->stack = stack;
  entry->words = static_cast<uint16_t>(words);
  return true;
}

uint32_t StackMemo::Commit(size_t set) {
  const auto begin = reinterpret_cast<uintptr_t>(&entries_[set * 2]);
  const uintptr_t last = begin + 2 * sizeof(Entry) - 1;
  const size_t looked_at = PageOf(begin + sizeof(Entry));
  uint32_t faults = 0;
  for (size_t page = PageOf(begin); page <= PageOf(last); ++page) {
    if (committed(page)) continue;
    committed_[page / 64] |= uint64_t{1} << page % 64;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(entries_) >> kPageBits) + page;
    const uintptr_t address = start << kPageBits > begin ? start << kPageBits : begin;
    // One access that writes: to read first would be a fault of its own.
    __atomic_fetch_or(reinterpret_cast<uint8_t*>(address), 0, __ATOMIC_RELAXED);
    faults += page <= looked_at ? faults_of_a_page_read_first : 1;
  }
  return faults;
}

void StackMemo::Forget() {
  const size_t entries = size_t{2} << (64 - shift_);
  for (size_t i = 0; i < entries; ++i) {
    // A page that was never touched stays so.
    const auto begin = reinterpret_cast<uintptr_t>(&entries_[i]);
    if (committed(PageOf(begin))) entries_[i].words = 0;
  }
}

}  // namespace memtrace::unwind
