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
// the thread's primary stack, complete stacks, no module unloaded since; and no
// stack of a context (kContextEnd), whose memory may go away. The memo is filled from the join's
// record, at the second sight of a beginning.
//
// Many stacks may have the same beginning: a program's own wrapper of malloc, at the
// same depth. When a third one comes to a set of two entries, a branch is made: where on
// the stack a word lies that tells them apart. From then on that word goes into the
// hash. So a lookup is a short walk of a decision tree, whose leaves are sets of
// entries; the words it goes by only choose, the proof is the entry's. In a leaf the
// entry that was not used last makes room.
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

  struct alignas(64) Entry {
    uintptr_t pc = 0;
    uintptr_t sp = 0;
    uint64_t epoch_word = 0;  // of module_epoch.h, when it was filled
    uint64_t stack = 0;       // the caller's name for this stack
    uintptr_t rbp = 0;        // compared if needs_rbp
    uint32_t leaf = 0;        // where it was put: low half of the hash
    uint16_t words = 0;       // 0: empty
    uint8_t needs_rbp = 0;
    uint64_t value[kMaxWords];
    uint16_t offset[kMaxWords];  // from sp, in words
  };
  static_assert(sizeof(Entry) == 7 * 64);

  // `entries` is a power of two from 4 to kMaxEntries; `memory` has Bytes(entries) of
  // zeros, 64-byte aligned, and is touched only where stacks are kept.
  static constexpr size_t Bytes(size_t entries) { return entries * sizeof(Entry); }
  static constexpr size_t kMaxEntries = 1024;
  static constexpr int kBranchBits = 12;
  static constexpr int kMaxDepth = 16;  // branches on the way to a leaf
  void Init(void* memory, size_t entries) {
    entries_ = static_cast<Entry*>(memory);
    shift_ = 64 - std::bit_width(entries / 2 - 1);
  }

  // Finds the leaf of `site` ahead of Find() and asks for its memory, so that it is there
  // when the allocator has done its work. `stack` as for Find().
  void Prepare(const CallSite& site, StackWindow stack) {
    const uint64_t hash = Descend(site, stack);
    leaf_ = hash;
    prepared_ = {site.pc, site.cfa};
    const size_t set = SetOf(hash);
    const auto* const entry = reinterpret_cast<const char*>(&entries_[set * 2 + sets_[set].used]);
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + 64);
    __builtin_prefetch(entry + offsetof(Entry, offset));
  }

  // The entry that is the stack of `site` now, or null. `stack` is the thread's
  // primary stack: words there may be read from the site's stack pointer on.
  const Entry* Find(const CallSite& site, StackWindow stack) {
    if (prepared_.pc != site.pc || prepared_.sp != site.cfa) leaf_ = Descend(site, stack);
    prepared_ = {};
    const uint64_t hash = leaf_;
    const size_t set = SetOf(hash);
    const Entry* const entries = &entries_[set * 2];
    const uint8_t used = sets_[set].used;
    if (Matches(entries[used], site)) return &entries[used];
    if (Matches(entries[used ^ 1], site)) {
      sets_[set].used = used ^ 1;
      return &entries[used ^ 1];
    }
    return nullptr;
  }

  // After a Find() in vain: the stack of `site` was captured into `join`, and the
  // caller names it `stack`. Returns how many page faults that has cost, by looking and by writing.
  uint32_t Learn(const CallSite& site, const StackJoin& join, uint64_t stack);

  // A new owner: its names mean nothing any more.
  void Forget();

  // The page faults of a page of fresh memory that is read first and written then: 2 where the
  // kernel maps its page of zeros for the reading, 1 where it gives a page at once. Written
  // before the first event.
  static inline constinit uint32_t faults_of_a_page_read_first = 2;

 private:
  // The words may be anything by now, also what AddressSanitizer has poisoned in a test.
  [[gnu::no_sanitize_address]] uint64_t Descend(const CallSite& site, StackWindow stack) const {
    uint64_t hash = Hash(site);
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      const Branch branch = branches_[BranchOf(hash)];
      if (branch.hash != static_cast<uint32_t>(hash)) break;
      const uintptr_t word = site.cfa + branch.offset * sizeof(uint64_t);
      if (!stack.Contains(word)) break;
      hash = Mix(hash, *reinterpret_cast<const uint64_t*>(word));
    }
    return hash;
  }

  static bool Matches(const Entry& entry, const CallSite& site) {
    if (entry.pc != site.pc || entry.sp != site.cfa) return false;
    if (entry.needs_rbp && entry.rbp != site.rbp) return false;
    if (entry.epoch_word != CurrentEpoch().word) [[unlikely]] return false;
    const auto* const stack = reinterpret_cast<const uint64_t*>(site.cfa);
    const uint32_t words = entry.words;
    for (uint32_t i = 0; i < words; ++i) {
      if (stack[entry.offset[i]] != entry.value[i]) return false;
    }
    return words != 0;
  }

  // Fills `entry`; false: this stack is not to be kept.
  static bool Fill(Entry* entry, const CallSite& site, const StackJoin& join, uint64_t stack);

  struct Branch {
    uint32_t hash = 0;    // low half: whose branch it is
    uint16_t offset = 0;  // of the word, in words above the stack pointer
  };
  struct Set {
    uint32_t seen = 0;  // the leaf that was seen once
    uint8_t used = 0;   // the entry used last
  };
  static size_t BranchOf(uint64_t hash) { return hash >> (64 - kBranchBits); }
  // The first word of the read-set that tells the stack in `join` from `entry`, or 0.
  static uint16_t Difference(const Entry& entry, const CallSite& site, const StackJoin& join);

  static uint64_t Hash(const CallSite& site) {
    return site.pc * uint64_t{0x9e3779b97f4a7c15} ^ site.cfa * uint64_t{0xd6e8feb86659fd93};
  }
  static uint64_t Mix(uint64_t hash, uint64_t word) {
    return (std::rotl(hash, 29) ^ word) * uint64_t{0x9e3779b97f4a7c15};
  }
  // Not by the bits that choose a branch: then few leaves would share a set.
  size_t SetOf(uint64_t hash) const { return hash << kBranchBits >> shift_; }

  // Commits the memory of a set that was looked at: one page fault to look, one to
  // write, for each page that nobody used before.
  uint32_t Commit(size_t set);

  static constexpr int kPageBits = 12;
  size_t PageOf(uintptr_t address) const {
    return (address >> kPageBits) - (reinterpret_cast<uintptr_t>(entries_) >> kPageBits);
  }
  bool committed(size_t page) const { return committed_[page / 64] >> page % 64 & 1; }

  Entry* entries_ = nullptr;
  int shift_ = 0;
  uint64_t committed_[(((kMaxEntries * sizeof(Entry)) >> kPageBits) + 2 + 63) / 64] = {};
  uint64_t leaf_ = 0;  // where the last way down ended
  struct {
    uintptr_t pc = 0;
    uintptr_t sp = 0;
  } prepared_;         // whose way down that was, if Prepare() went it
  Branch branches_[1 << kBranchBits] = {};
  Set sets_[kMaxEntries / 2] = {};
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_MEMO_H_
