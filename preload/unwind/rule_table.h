// RuleTable: pc -> FrameRule, for the whole process.
//
// Open addressing, insert-only, lock-free. An entry is two words:
//
//   key    tag : 16 | exact : 1 | pc : 47     0: free
//   rule   FrameRule                          0: not written yet
//
// An entry is claimed by a compare-and-swap of its key, then its rule is stored
// (release); a reader loads the key, then the rule (both acquire), and takes a rule of
// zero for a miss. Neither changes afterwards, but where the module instance of the key is gone for
// good: then an insertion for the same pc takes the entry over. It takes the rule away (whoever
// does that has it), then changes the key, then stores its rule.
//
// `exact` tells an interrupted instruction from a return address, for the same pc
// may need two rules. `tag` is the module instance: entries of permanent modules
// (tag 0) are found by one compare; an entry with another tag counts only while
// its instance is current (module_epoch.h). What is left of others goes when the table is copied.
//
// A table that is more than 3/8 full is copied into one twice as big, up to
// kLargestBits, or into one as big where that makes it half as full; an insertion that
// the copy misses is simply made again at the next miss. The old one stays mapped, for a reader may
// be in it, but its pages are given back: what it reads then are free entries, a miss. A probe that
// finds no room within kMaxProbes does not keep the rule.
//
// All threads that find a table crowded make one and the same copy: what one of them leaves half
// done, for a handler jumps away from it, the next insertion finishes.
//
// The pcs of 64 bytes of code share a cache line of the table while there is room.
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
  static constexpr int kFirstBits = 12;    // 64 KiB
  static constexpr int kLargestBits = 18;  // 4 MiB
  static constexpr size_t kMaxProbes = 128;

  struct alignas(16) Entry {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> rule;
  };

  // The key to look up for a canonical user-space pc: pc >> kAddressBits == 0.
  static constexpr uint64_t Lookup(uintptr_t pc, bool exact) {
    return pc | static_cast<uint64_t>(exact) << kAddressBits;
  }
  static constexpr uint16_t TagOf(uint64_t key) { return static_cast<uint16_t>(key >> 48); }

  static const RuleTable& Instance() { return g_instance; }

  // The packed rule, or 0. `*key` is then the entry's, for its tag.
  [[gnu::always_inline]] uint64_t Find(uint64_t lookup, uint64_t* key) const {
    const Table table = table_.load(std::memory_order_acquire);
    if (table.word == 0) [[unlikely]] return 0;
    const Entry& entry = table.entries()[table.Home(lookup)];
    *key = entry.key.load(std::memory_order_relaxed);
    if (*key == lookup) [[likely]] return entry.rule.load(std::memory_order_acquire);
    return FindFurther(table, lookup, key);
  }

  enum class Inserted : uint8_t { kYes, kAlready, kFull };
  static Inserted Insert(uint64_t lookup, uint16_t tag, FrameRule rule);

  // The bytes of all tables in memory.
  static uint64_t memory_bytes() {
    return g_instance.memory_bytes_.load(std::memory_order_relaxed);
  }
  // Those of tables that a larger one followed: mapped still, with no memory behind them.
  static uint64_t former_bytes() {
    return g_instance.former_bytes_.load(std::memory_order_relaxed);
  }
  // The table that is used, and its bytes; nullptr: there is none yet.
  static const void* memory(size_t* bytes) {
    const Table table = g_instance.table_.load(std::memory_order_acquire);
    if (table.word == 0) return nullptr;
    *bytes = sizeof(Entry) << table.bits();
    return table.entries();
  }
  // Page faults that the tables' own pages took: each is touched once, when its table is made.
  static uint64_t minor_faults() {
    return g_instance.minor_faults_.load(std::memory_order_relaxed);
  }

  static void ClearForTesting();
  static void BeginAnewForTesting();  // with no table
  static size_t HomeForTesting(uint64_t lookup) {
    return g_instance.table_.load(std::memory_order_relaxed).Home(lookup);
  }
  static size_t entries() {
    return size_t{1} << g_instance.table_.load(std::memory_order_relaxed).bits();
  }

 private:
  // Where a table is and how big, in one word: bits : 8 << 56 | address.
  struct Table {
    uint64_t word;
    int bits() const { return static_cast<int>(word >> 56); }
    Entry* entries() const { return reinterpret_cast<Entry*>(word & ((uint64_t{1} << 56) - 1)); }
    size_t Home(uint64_t lookup) const {
      const uint64_t line = ((lookup >> 6) * 0x9e3779b97f4a7c15) >> (64 + 2 - bits());
      return line << 2 | (lookup >> 4 & 3);
    }
  };

  static uint64_t FindFurther(Table table, uint64_t lookup, uint64_t* key);
  static Inserted InsertInto(Table table, uint64_t key, uint64_t rule);
  static uint32_t Living(Table table);  // entries that are not of modules that are gone
  static Table Begin(Table old, int bits);
  static void Touch(Table table);
  static uint32_t Copy(Table old, Table table);
  static void Grow(Table old);

  static RuleTable g_instance;
  std::atomic<Table> table_{Table{0}};  // 0: no insertion yet
  std::atomic<uint32_t> used_{0};
  std::atomic<Table> begun_{Table{0}};  // the table that was begun last: may be in table_ by now
  std::atomic<uint32_t> retired_{0};  // tags, when it was copied or looked through last
  std::atomic<uint64_t> memory_bytes_{0};
  std::atomic<uint64_t> former_bytes_{0};
  std::atomic<uint64_t> minor_faults_{0};
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_RULE_TABLE_H_
