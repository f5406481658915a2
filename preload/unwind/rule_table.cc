#include "preload/unwind/rule_table.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "preload/unwind/arch_x86_64.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

namespace memtrace::unwind {

constinit RuleTable RuleTable::g_instance;

uint64_t RuleTable::FindFurther(const Entry* entries, uint64_t lookup, uint64_t* key) {
  size_t index = Home(lookup);
  for (size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & (kEntries - 1)) {
    *key = entries[index].key.load(std::memory_order_relaxed);
    if (*key == 0) return 0;
    if ((*key ^ lookup) << 16 != 0) continue;
    const uint64_t rule = entries[index].rule.load(std::memory_order_acquire);
    if (rule == 0) continue;
    const uint16_t tag = TagOf(*key);
    if (tag == kPermanentTag) return rule;
    // A return address at the begin of a module belongs to what lies before it.
    const bool exact = lookup >> kAddressBits & 1;
    const uintptr_t pc = lookup & ((uint64_t{1} << kAddressBits) - 1);
    if (TagIsCurrent(tag, CodePoint{pc, exact}.lookup())) return rule;
  }
  return 0;
}

RuleTable::Entry* RuleTable::Entries() {
  Entry* entries = g_instance.entries_.load(std::memory_order_acquire);
  if (entries != nullptr) return entries;
  constexpr long kBytes = kEntries * sizeof(Entry);
  const long mapped =
      RawSystemCall(SYS_mmap, 0, kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped < 0) return nullptr;
  // Huge pages would commit all of it at the first touch.
  RawSystemCall(SYS_madvise, mapped, kBytes, MADV_NOHUGEPAGE);
  static const char kName[] = "memtrace unwind rules";
  RawSystemCall(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapped, kBytes,
                reinterpret_cast<long>(kName));
  auto* fresh = reinterpret_cast<Entry*>(mapped);
  if (g_instance.entries_.compare_exchange_strong(entries, fresh, std::memory_order_acq_rel)) {
    return fresh;
  }
  RawSystemCall(SYS_munmap, mapped, kBytes);  // another thread was first
  return entries;
}

RuleTable::Inserted RuleTable::Insert(uint64_t lookup, uint16_t tag, FrameRule rule) {
  Entry* entries = Entries();
  if (entries == nullptr) return Inserted::kFull;
  const uint64_t key = lookup | static_cast<uint64_t>(tag) << 48;
  size_t index = Home(lookup);
  for (size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & (kEntries - 1)) {
    Entry& entry = entries[index];
    uint64_t found = entry.key.load(std::memory_order_relaxed);
    if (found == 0 &&
        entry.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
      g_instance.CountFaults(index);
      entry.rule.store(rule.Packed(), std::memory_order_release);
      return Inserted::kYes;
    }
    if (found == key) return Inserted::kAlready;
  }
  return Inserted::kFull;
}

uint64_t RuleTable::ResidentBytes() {
  const Entry* entries = g_instance.entries_.load(std::memory_order_acquire);
  if (entries == nullptr) return 0;
  uint8_t pages[kEntries * sizeof(Entry) / kPageBytes];
  if (RawSystemCall(SYS_mincore, reinterpret_cast<long>(entries), kEntries * sizeof(Entry),
                    reinterpret_cast<long>(pages)) != 0) {
    return kEntries * sizeof(Entry);
  }
  uint64_t resident = 0;
  for (const uint8_t page : pages) resident += (page & 1) * kPageBytes;
  return resident;
}

void RuleTable::ClearForTesting() {
  Entry* entries = g_instance.entries_.load(std::memory_order_acquire);
  if (entries == nullptr) return;
  for (size_t i = 0; i < kEntries; ++i) {
    entries[i].key.store(0, std::memory_order_relaxed);
    entries[i].rule.store(0, std::memory_order_relaxed);
  }
}

}  // namespace memtrace::unwind
