#include "preload/unwind/rule_table.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "preload/allowed_calls.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

namespace memtrace::unwind {

constinit RuleTable RuleTable::g_instance;

namespace {

// Zeroed, and not touched yet.
void* MapTable(size_t bytes) {
  const long mapped = RawSystemCall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped < 0) return nullptr;
  RawSystemCall(SYS_madvise, mapped, static_cast<long>(bytes), MADV_NOHUGEPAGE);
  static const char kName[] = "memtrace unwind rules";
  if (const OtherCalls calls; calls) {
    RawSystemCall(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapped, static_cast<long>(bytes),
                  reinterpret_cast<long>(kName));
  }
  return reinterpret_cast<void*>(mapped);
}

}  // namespace

uint64_t RuleTable::FindFurther(Table table, uint64_t lookup, uint64_t* key) {
  const size_t mask = (size_t{1} << table.bits()) - 1;
  const Entry* const entries = table.entries();
  size_t index = table.Home(lookup);
  for (size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & mask) {
    *key = entries[index].key.load(std::memory_order_acquire);
    if (*key == 0) return 0;
    if ((*key ^ lookup) << 16 != 0) continue;
    const uint64_t rule = entries[index].rule.load(std::memory_order_acquire);
    if (rule == 0) continue;
    const uint16_t tag = TagOf(*key);
    if (tag == kPermanentTag) return rule;
    // A return address at the begin of a module belongs to what lies before it.
    const bool exact = lookup >> kAddressBits & 1;
    const uintptr_t pc = lookup & ((uint64_t{1} << kAddressBits) - 1);
    if (!TagIsCurrent(tag, CodePoint{pc, exact}.lookup())) continue;
    if (!ClosesAreUnseen()) return rule;
    FrameRule asked = FrameRule::Unpacked(rule);
    asked.flags |= kAskedFor;
    return asked.Packed();
  }
  return 0;
}

RuleTable::Inserted RuleTable::InsertInto(Table table, uint64_t key, uint64_t rule) {
  const size_t mask = (size_t{1} << table.bits()) - 1;
  Entry* const entries = table.entries();
  size_t index = table.Home(key & ~(uint64_t{0xffff} << 48));
  for (size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & mask) {
    Entry& entry = entries[index];
    uint64_t found = entry.key.load(std::memory_order_relaxed);
    if (found == 0 &&
        entry.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
      entry.rule.store(rule, std::memory_order_release);
      return Inserted::kYes;
    }
    if (found == key) {
      // Who wrote the key may have left before it wrote the rule, which is the same.
      uint64_t none = 0;
      entry.rule.compare_exchange_strong(none, rule, std::memory_order_release,
                                         std::memory_order_relaxed);
      return Inserted::kAlready;
    }
    if ((found ^ key) << 16 != 0 || !IsRetired(TagOf(found))) continue;
    uint64_t old = entry.rule.load(std::memory_order_relaxed);
    if (old == 0 || entry.key.load(std::memory_order_relaxed) != found ||
        !entry.rule.compare_exchange_strong(old, 0, std::memory_order_acq_rel)) {
      continue;
    }
    entry.key.store(key, std::memory_order_release);
    entry.rule.store(rule, std::memory_order_release);
    return Inserted::kAlready;
  }
  return Inserted::kFull;
}

RuleTable::Inserted RuleTable::Insert(uint64_t lookup, uint16_t tag, FrameRule rule) {
  Table table = g_instance.table_.load(std::memory_order_acquire);
  if (table.word == 0 || g_instance.used_.load(std::memory_order_relaxed) > entries() / 8 * 3) {
    Grow(table);
    table = g_instance.table_.load(std::memory_order_acquire);
  }
  if (table.word == 0) return Inserted::kFull;
  const Inserted inserted =
      InsertInto(table, lookup | static_cast<uint64_t>(tag) << 48, rule.Packed());
  if (inserted == Inserted::kYes) g_instance.used_.fetch_add(1, std::memory_order_relaxed);
  return inserted;
}

uint32_t RuleTable::Living(Table table) {
  uint32_t living = 0;
  for (size_t i = 0; i < size_t{1} << table.bits(); ++i) {
    const uint64_t key = table.entries()[i].key.load(std::memory_order_relaxed);
    living += key != 0 && !IsRetired(TagOf(key));
  }
  return living;
}

// The table of `bits` that was begun to follow `old`, or a new one.
RuleTable::Table RuleTable::Begin(Table old, int bits) {
  Table begun = g_instance.begun_.load(std::memory_order_acquire);
  const auto may_go_on = [&] {
    return begun.word != 0 && begun.word != old.word && begun.bits() == bits;
  };
  if (may_go_on()) return begun;
  const size_t bytes = sizeof(Entry) << bits;
  void* const memory = MapTable(bytes);
  if (memory == nullptr) return {0};
  const Table table = {reinterpret_cast<uint64_t>(memory) | static_cast<uint64_t>(bits) << 56};
  if (g_instance.begun_.compare_exchange_strong(begun, table, std::memory_order_acq_rel) ||
      !may_go_on()) {
    return table;
  }
  RawSystemCall(SYS_munmap, reinterpret_cast<long>(memory), static_cast<long>(bytes));
  return begun;
}

// Of each page, so that its faults are known. What is in it stays.
void RuleTable::Touch(Table table) {
  constexpr size_t kStep = kPageBytes / sizeof(Entry);
  for (size_t i = 0; i < size_t{1} << table.bits(); i += kStep) {
    uint64_t free = 0;
    table.entries()[i].key.compare_exchange_strong(free, 0, std::memory_order_relaxed);
  }
}

// How many of the rules in `old` are in `table` then: those of modules that are gone are not.
uint32_t RuleTable::Copy(Table old, Table table) {
  uint32_t used = 0;
  for (size_t i = 0; i < size_t{1} << old.bits(); ++i) {
    const Entry& entry = old.entries()[i];
    const uint64_t key = entry.key.load(std::memory_order_relaxed);
    const uint64_t rule = entry.rule.load(std::memory_order_acquire);
    if (rule == 0 || IsRetired(TagOf(key))) continue;
    used += InsertInto(table, key, rule) != Inserted::kFull;
  }
  return used;
}

// Whoever finds the table crowded copies it, and all of them make one and the same copy, which any
// of them may finish: a handler that interrupts a thread here may jump away, again and again, or the
// thread may end or wait for long. It needs the larger table no less than the others.
void RuleTable::Grow(Table old) {
  const uint32_t retired = RetiredTags();
  const bool largest = old.word != 0 && old.bits() >= kLargestBits;
  if (largest && retired == g_instance.retired_.load(std::memory_order_relaxed)) return;
  const bool half_is_gone = old.word != 0 && Living(old) <= g_instance.used_.load() / 2;
  const int bits = old.word == 0 ? kFirstBits : half_is_gone ? old.bits() : old.bits() + 1;
  if (bits > kLargestBits) {
    g_instance.retired_.store(retired, std::memory_order_relaxed);
    return;
  }
  const Table table = Begin(old, bits);
  if (table.word == 0) return;
  Touch(table);
  const uint32_t used = old.word != 0 ? Copy(old, table) : 0;
  const size_t bytes = sizeof(Entry) << bits;
  const size_t freed = old.word != 0 ? sizeof(Entry) << old.bits() : 0;
  Table expected = old;
  if (!g_instance.table_.compare_exchange_strong(expected, table, std::memory_order_acq_rel)) {
    return;  // another was done first
  }
  g_instance.used_.store(used, std::memory_order_relaxed);
  g_instance.retired_.store(retired, std::memory_order_relaxed);
  if (freed != 0) {
    RawSystemCall(SYS_madvise, reinterpret_cast<long>(old.entries()), static_cast<long>(freed),
                  MADV_DONTNEED);
  }
  g_instance.memory_bytes_.fetch_add(bytes - freed, std::memory_order_relaxed);
  g_instance.former_bytes_.fetch_add(freed, std::memory_order_relaxed);
  g_instance.minor_faults_.fetch_add(bytes / kPageBytes, std::memory_order_relaxed);
}

void RuleTable::ClearForTesting() {
  const Table table = g_instance.table_.load(std::memory_order_acquire);
  if (table.word == 0) return;
  for (size_t i = 0; i < size_t{1} << table.bits(); ++i) {
    table.entries()[i].key.store(0, std::memory_order_relaxed);
    table.entries()[i].rule.store(0, std::memory_order_relaxed);
  }
  g_instance.used_.store(0, std::memory_order_relaxed);
}

void RuleTable::BeginAnewForTesting() {
  g_instance.table_.store({0}, std::memory_order_relaxed);
  g_instance.begun_.store({0}, std::memory_order_relaxed);
  g_instance.used_.store(0, std::memory_order_relaxed);
}

}  // namespace memtrace::unwind
