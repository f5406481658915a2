// RuleTable: pc -> FrameRule, for the whole process.
//
// Open addressing, insert-only, lock-free. An entry is two words:
//
//   key    tag : 16 | exact : 1 | pc : 47     0: free
//   rule   FrameRule                          0: not written yet
//
// An entry is claimed by a compare-and-swap of its key, then its rule is stored
// (release); a reader loads the key, then the rule (acquire), and takes a rule of
// zero for a miss. Neither changes afterwards.
//
// `exact` tells an interrupted instruction from a return address, for the same pc
// may need two rules. `tag` is the module instance: entries of permanent modules
// (tag 0) are found by one compare; an entry with another tag counts only while
// its instance is current (module_epoch.h), and may lie there for ever behind.
//
// The table is mapped at the first insertion, committed by the kernel page by
// page, and bounded: kEntries. The pcs of one page of code share one page of
// the table, so that a small program commits little. When a probe finds no room
// within kMaxProbes the rule is not kept.
//
// Threads: any, in any state. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_RULE_TABLE_H_
#define MEMTRACE_PRELOAD_UNWIND_RULE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/unwind/frame_rule.h"
#include "preload/unwind/module_epoch.h"

namespace memtrace::unwind {

class RuleTable {
 public:
  static constexpr size_t kEntries = size_t{1} << 18;  // 4 MiB when all are touched
  static constexpr size_t kMaxProbes = 128;

  struct alignas(16) Entry {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> rule;
  };

  // Of a canonical user-space pc: pc >> kAddressBits == 0.
  static constexpr uint64_t Lookup(uintptr_t pc, bool exact) {
    return pc | static_cast<uint64_t>(exact) << kAddressBits;
  }
  static constexpr uint16_t TagOf(uint64_t key) { return static_cast<uint16_t>(key >> 48); }

  static const RuleTable& Instance() { return g_instance; }

  // The packed rule, or 0. `*key` is then the entry's, for its tag.
  [[gnu::always_inline]] uint64_t Find(uint64_t lookup, uint64_t* key) const {
    const Entry* entries = entries_.load(std::memory_order_acquire);
    if (entries == nullptr) [[unlikely]] return 0;
    const Entry& entry = entries[Home(lookup)];
    *key = entry.key.load(std::memory_order_relaxed);
    if (*key == lookup) [[likely]] return entry.rule.load(std::memory_order_acquire);
    return FindFurther(entries, lookup, key);
  }

  enum class Inserted : uint8_t { kYes, kAlready, kFull };
  static Inserted Insert(uint64_t lookup, uint16_t tag, FrameRule rule);

  // Of address space: what of it is committed only the kernel knows.
  static size_t mapped_bytes() {
    return g_instance.entries_.load(std::memory_order_relaxed) != nullptr
               ? kEntries * sizeof(Entry)
               : 0;
  }
  // Of these, what has been touched. One system call.
  static uint64_t ResidentBytes();

  // Page faults by the table's own pages: each was looked at, then written.
  static uint64_t minor_faults() {
    return 2 * g_instance.committed_pages_.load(std::memory_order_relaxed);
  }

  static void ClearForTesting();
  static constexpr size_t HomeForTesting(uint64_t lookup) { return Home(lookup); }

 private:
  // A page of code has a group of entries, one for 16 bytes; groups are spread.
  static constexpr size_t kGroup = 256;
  static constexpr size_t Home(uint64_t lookup) {
    const uint64_t group = ((lookup >> 12) * 0x9e3779b97f4a7c15) >> (64 - 10);
    return group * kGroup + ((lookup >> 4) & (kGroup - 1));
  }
  static_assert(kEntries == kGroup << 10);

  static_assert(kGroup * sizeof(Entry) == 4096, "a group of entries is a page");

  void CountFaults(size_t index) {
    const size_t page = index / kGroup;
    const uint64_t bit = uint64_t{1} << page % 64;
    if (committed_[page / 64].load(std::memory_order_relaxed) & bit) return;
    if (committed_[page / 64].fetch_or(bit, std::memory_order_relaxed) & bit) return;
    committed_pages_.fetch_add(1, std::memory_order_relaxed);
  }

  static uint64_t FindFurther(const Entry* entries, uint64_t lookup, uint64_t* key);
  static Entry* Entries();

  static RuleTable g_instance;
  std::atomic<Entry*> entries_{nullptr};
  std::atomic<uint64_t> committed_[kEntries / kGroup / 64] = {};  // a bit for each page
  std::atomic<uint64_t> committed_pages_{0};
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_RULE_TABLE_H_
