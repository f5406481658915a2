#include "preload/own_memory.h"

#include <sys/mman.h>

#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/rounding.h"
#include "preload/sys.h"
#include "preload/unwind/rule_table.h"

namespace memtrace {
namespace {

constinit std::atomic<uint64_t> g_own_bytes{0};
constinit std::atomic<uint64_t> g_ring_bytes{0};
constinit std::atomic<uint64_t> g_own_minor_faults{0};
constinit std::atomic<uint64_t> g_parents_minor_faults{0};  // contained in the sum of all
constinit thread_local bool t_counting_faults = false;

// begin == 0: free; 1: being filled.
struct Entry {
  std::atomic<uintptr_t> begin{0};
  std::atomic<size_t> bytes{0};
};
constexpr size_t kEntries = 4096;
constinit Entry g_entries[kEntries];
constinit std::atomic<size_t> g_used_entries{0};  // those behind were never used

void Note(void* address, size_t bytes) {
  for (size_t i = 0; i < kEntries; ++i) {
    uintptr_t none = 0;
    if (g_entries[i].begin.load(std::memory_order_relaxed) != 0 ||
        !g_entries[i].begin.compare_exchange_strong(none, 1)) {
      continue;
    }
    g_entries[i].bytes.store(bytes, std::memory_order_relaxed);
    g_entries[i].begin.store(reinterpret_cast<uintptr_t>(address), std::memory_order_release);
    size_t used = g_used_entries.load(std::memory_order_relaxed);
    while (used <= i && !g_used_entries.compare_exchange_weak(used, i + 1)) {
    }
    return;
  }
}

void Forget(const void* address) {
  const size_t used = g_used_entries.load(std::memory_order_acquire);
  for (size_t i = 0; i < used; ++i) {
    uintptr_t found = reinterpret_cast<uintptr_t>(address);
    // A locked instruction for each of thousands of threads' mappings would be microseconds.
    if (g_entries[i].begin.load(std::memory_order_relaxed) != found) continue;
    if (g_entries[i].begin.compare_exchange_strong(found, 0)) return;
  }
}

struct Change {
  enum : uint32_t { kFree, kFilling, kFull };
  std::atomic<uint32_t> state{kFree};
  OwnMemoryChange change = {};
};
constexpr size_t kMostChanges = 256;
constinit Change g_changes[kMostChanges];
constinit std::atomic<bool> g_watched{false};
constinit std::atomic<uint32_t> g_change_count{0};

void Tell(uint64_t ns, void* address, size_t bytes, bool came) {
  if (!g_watched.load(std::memory_order_relaxed)) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (Change& each : g_changes) {
    uint32_t free = Change::kFree;
    if (each.state.load(std::memory_order_relaxed) != Change::kFree ||
        !each.state.compare_exchange_strong(free, Change::kFilling, std::memory_order_acquire)) {
      continue;
    }
    each.change = {ns, begin, begin + bytes, came};
    each.state.store(Change::kFull, std::memory_order_release);  // with Take()
    g_change_count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

int64_t ThreadMinorFaults() {
  const OtherCalls calls;
  if (!calls) return -1;
  rusage usage;
  return sys::Failed(sys::Getrusage(RUSAGE_THREAD, &usage)) ? -1 : usage.ru_minflt;
}

// Before memory comes; 0: nobody takes notice.
uint64_t TimeOfChange() {
  return g_watched.load(std::memory_order_relaxed) ? NowNs(CLOCK_MONOTONIC) : 0;
}

void Came(uint64_t ns, void* memory, size_t bytes) {
  sys::NameMapping(memory, bytes, "memtrace");
  CountOwnBytes(static_cast<int64_t>(bytes));
  Note(memory, bytes);
  Tell(ns, memory, bytes, /*came=*/true);
}

// At a multiple of `alignment`, without ever having more: where the address space is limited. Below
// where the kernel would put it there is mostly nothing. Null: nothing was found.
void* MapBelowOthers(size_t bytes, size_t alignment) {
  const auto map = [bytes](void* at, int flags) {
    return sys::Mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags);
  };
  void* const first = map(nullptr, 0);
  if (sys::MmapFailed(first)) return nullptr;
  sys::Munmap(first, bytes);
  uintptr_t at = reinterpret_cast<uintptr_t>(first) & ~(alignment - 1);
  constexpr int kMostTries = 256;
  for (int i = 0; i < kMostTries && at > alignment; ++i, at -= alignment) {
    void* const found = map(reinterpret_cast<void*>(at), MAP_FIXED_NOREPLACE);
    if (found == reinterpret_cast<void*>(at)) return found;
    if (!sys::MmapFailed(found)) sys::Munmap(found, bytes);  // before Linux 4.17
  }
  return nullptr;
}

}  // namespace

void* OwnMap(size_t bytes, bool touch) {
  bytes = Up(bytes, arch::kPageBytes);  // as the kernel maps it, and the memory map has it
  const uint64_t ns = TimeOfChange();
  void* memory = sys::Mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : 0));
  if (sys::MmapFailed(memory)) return nullptr;
  Came(ns, memory, bytes);
  return memory;
}

void* OwnMapAligned(size_t bytes, size_t alignment) {
  bytes = Up(bytes, arch::kPageBytes);
  const uint64_t ns = TimeOfChange();
  const size_t room = bytes + alignment - arch::kPageBytes;
  void* const memory =
      sys::Mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (sys::MmapFailed(memory)) {
    void* const found = MapBelowOthers(bytes, alignment);
    if (found != nullptr) Came(ns, found, bytes);
    return found;
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + room;
  const uintptr_t at = Up(begin, alignment);
  if (at != begin) sys::Munmap(memory, at - begin);
  if (at + bytes != end) sys::Munmap(reinterpret_cast<void*>(at + bytes), end - (at + bytes));
  Came(ns, reinterpret_cast<void*>(at), bytes);
  return reinterpret_cast<void*>(at);
}

void OwnUnmap(void* address, size_t bytes) {
  bytes = Up(bytes, arch::kPageBytes);
  Forget(address);
  // Told before: when it is gone it may be anybody's.
  if (g_watched.load(std::memory_order_relaxed)) {
    Tell(NowNs(CLOCK_MONOTONIC), address, bytes, /*came=*/false);
  }
  sys::Munmap(address, bytes);
  CountOwnBytes(-static_cast<int64_t>(bytes));
}

void OwnMemoryChanges::Watch() { g_watched.store(true, std::memory_order_relaxed); }
void OwnMemoryChanges::Forget() {
  g_watched.store(false, std::memory_order_relaxed);
  for (Change& each : g_changes) each.state.store(Change::kFree, std::memory_order_relaxed);
  g_change_count.store(0, std::memory_order_relaxed);
}
bool OwnMemoryChanges::AreMany() {
  return g_change_count.load(std::memory_order_relaxed) > kMostChanges / 2;
}
bool OwnMemoryChanges::Take(OwnMemoryChange* change) {
  if (g_change_count.load(std::memory_order_relaxed) == 0) return false;
  for (Change& each : g_changes) {
    if (each.state.load(std::memory_order_acquire) != Change::kFull) continue;
    *change = each.change;
    each.state.store(Change::kFree, std::memory_order_release);
    g_change_count.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

size_t OwnRanges(OwnRange* out, size_t capacity) {
  // The stack engine maps its rule table itself: it stands below this file.
  size_t count = 0;
  size_t table_bytes = 0;
  const auto table = reinterpret_cast<uintptr_t>(unwind::RuleTable::memory(&table_bytes));
  if (table != 0 && capacity > 0) out[count++] = {table, table + table_bytes};
  const size_t used = g_used_entries.load(std::memory_order_acquire);
  for (size_t i = 0; i < used && count < capacity; ++i) {
    const uintptr_t begin = g_entries[i].begin.load(std::memory_order_acquire);
    if (begin <= 1) continue;
    out[count++] = {begin, begin + g_entries[i].bytes.load(std::memory_order_relaxed)};
  }
  return count;
}

uint64_t own_bytes() {
  return g_own_bytes.load(std::memory_order_relaxed) + unwind::RuleTable::memory_bytes();
}
uint64_t own_minor_faults() {
  return g_own_minor_faults.load(std::memory_order_relaxed) +
         unwind::RuleTable::minor_faults() - g_parents_minor_faults.load(std::memory_order_relaxed);
}
void ForgetOwnMinorFaults() {
  g_parents_minor_faults.fetch_add(own_minor_faults(), std::memory_order_relaxed);
}
void CountOwnMinorFaults(uint64_t faults) {
  g_own_minor_faults.fetch_add(faults, std::memory_order_relaxed);
}
uint32_t FaultsOfPageReadFirst() {
  constexpr uint32_t kUsual = 2;
  auto* const page = static_cast<volatile char*>(OwnMap(arch::kPageBytes, /*touch=*/false));
  if (page == nullptr) return kUsual;
  static_cast<void>(page[0]);
  const int64_t before = ThreadMinorFaults();
  page[0] = 1;
  const int64_t after = ThreadMinorFaults();
  OwnUnmap(const_cast<char*>(page), arch::kPageBytes);
  return before >= 0 && after == before ? 1 : kUsual;
}
uint64_t own_private_bytes() {
  return own_bytes() + unwind::RuleTable::former_bytes() -
         g_ring_bytes.load(std::memory_order_relaxed);
}
void CountRingBytes(int64_t bytes) {
  g_ring_bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
  CountOwnBytes(bytes);
}
void CountOwnBytes(int64_t bytes) {
  g_own_bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
}

OwnFaultsScope::OwnFaultsScope() {
  if (t_counting_faults) return;
  t_counting_faults = outermost_ = true;
  before_ = ThreadMinorFaults();
}

void OwnFaultsScope::ForgetOwn() { t_counting_faults = false; }

OwnFaultsScope::~OwnFaultsScope() {
  if (!outermost_) return;
  t_counting_faults = false;
  if (before_ < 0) return;
  const int64_t after = ThreadMinorFaults();
  if (after > before_) {
    g_own_minor_faults.fetch_add(static_cast<uint64_t>(after - before_), std::memory_order_relaxed);
  }
}

}  // namespace memtrace
