// StackMemo: whole stacks of a thread that are likely to come again.
//
// An entry is found by where the stack begins, (pc, stack pointer) of the caller,
// and holds the read-set of the walk from there: every word it read, in order, as
// offset from that stack pointer and value. If all of them are what they were, a
// walk now would read the same and find the same frames, so the entry's stack is this
// stack: a proof, not a guess (docs/stack-capture.md). Comparing a word costs a load
// and a compare; the walk it stands for costs ten times that.
//
// The same conditions as for the join hold for what may be kept (stack_join.h):
// the thread's primary stack, complete stacks, no module unloaded since. The memo
// is filled from the join's record, at the second sight of a beginning.
//
// Threads: one object belongs to one thread. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_STACK_MEMO_H_
#define MEMTRACE_PRELOAD_UNWIND_STACK_MEMO_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "preload/unwind/module_epoch.h"
#include "preload/unwind/stack_join.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {

class StackMemo {
 public:
  static constexpr size_t kMaxWords = 40;  // stacks that read more are left to the join

  struct Entry {
    uintptr_t pc = 0;
    uintptr_t sp = 0;
    uintptr_t rbp = 0;        // compared if needs_rbp
    uint64_t epoch_word = 0;  // of module_epoch.h, when it was filled
    uint64_t stack = 0;       // the caller's name for this stack
    uint32_t words = 0;       // 0: seen once, not filled
    bool needs_rbp = false;
    uint32_t offset[kMaxWords];  // from sp
    uint64_t value[kMaxWords];
  };

  // `entries` is a power of two from 2; `memory` has Bytes(entries) of zeros, and is
  // touched only where stacks are kept.
  static constexpr size_t Bytes(size_t entries) { return entries * sizeof(Entry); }
  // `entries` is at most kMaxEntries.
  static constexpr size_t kMaxEntries = 1024;
  void Init(void* memory, size_t entries) {
    entries_ = static_cast<Entry*>(memory);
    shift_ = 64 - std::bit_width(entries - 1);
  }

  // Where a stack that begins at `site` is, or would be kept.
  Entry* Find(const CallSite& site) { return &entries_[Hash(site.pc, site.cfa)]; }

  // Commits the memory of an entry that was looked at, and returns how many page faults
  // it has cost by that: one to look, one to write, for each page that nobody used before.
  uint32_t Commit(Entry* entry) {
    const auto begin = reinterpret_cast<uintptr_t>(entry);
    uint32_t faults = CommitPage(begin, 1);
    const uintptr_t last = begin + sizeof(Entry) - 1;
    if (last >> kPageBits != begin >> kPageBits) faults += CommitPage(last, 0);
    return faults;
  }

  // Is `entry` the stack of `site` now?
  static bool Matches(const Entry& entry, const CallSite& site) {
    if (entry.pc != site.pc || entry.sp != site.cfa || entry.words == 0) return false;
    if (entry.needs_rbp && entry.rbp != site.rbp) return false;
    if (entry.epoch_word != CurrentEpoch().word) [[unlikely]] return false;
    const uint32_t words = entry.words;
    for (uint32_t i = 0; i < words; ++i) {
      if (*reinterpret_cast<const uint64_t*>(site.cfa + entry.offset[i]) != entry.value[i]) {
        return false;
      }
    }
    return true;
  }

  // The stack of `site` was captured into `join`, and the caller names it `stack`.
  static void Learn(Entry* entry, const CallSite& site, const StackJoin& join, uint64_t stack);

  // A new owner: its names mean nothing any more.
  void Forget();

 private:
  size_t Hash(uintptr_t pc, uintptr_t sp) const {
    return (pc * uint64_t{0x9e3779b97f4a7c15} ^ sp * uint64_t{0xd6e8feb86659fd93}) >> shift_;
  }

  static constexpr int kPageBits = 12;
  size_t PageOf(uintptr_t address) const {
    return (address >> kPageBits) - (reinterpret_cast<uintptr_t>(entries_) >> kPageBits);
  }
  bool committed(size_t page) const { return committed_[page / 64] >> page % 64 & 1; }
  uint32_t CommitPage(uintptr_t address, uint32_t looked_at) {
    const size_t page = PageOf(address);
    if (committed(page)) return 0;
    committed_[page / 64] |= uint64_t{1} << page % 64;
    // One access that writes: to read first would be a fault of its own.
    __atomic_fetch_or(reinterpret_cast<uint8_t*>(address), 0, __ATOMIC_RELAXED);
    return looked_at + 1;
  }

  Entry* entries_ = nullptr;
  uint64_t committed_[(((kMaxEntries * sizeof(Entry)) >> kPageBits) + 2 + 63) / 64] = {};
  int shift_ = 0;
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_MEMO_H_
