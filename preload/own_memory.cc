#include "preload/own_memory.h"

#include <sys/mman.h>

#include "preload/allowed_calls.h"
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
    if (g_entries[i].begin.compare_exchange_strong(found, 0)) return;
  }
}

int64_t ThreadMinorFaults() {
  const OtherCalls calls;
  if (!calls) return -1;
  rusage usage;
  return sys::Failed(sys::Getrusage(RUSAGE_THREAD, &usage)) ? -1 : usage.ru_minflt;
}

}  // namespace

void* OwnMap(size_t bytes, bool touch) {
  void* memory = sys::Mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : 0));
  if (sys::MmapFailed(memory)) return nullptr;
  sys::NameMapping(memory, bytes, "memtrace");
  CountOwnBytes(static_cast<int64_t>(bytes));
  Note(memory, bytes);
  return memory;
}

void OwnUnmap(void* address, size_t bytes) {
  Forget(address);
  sys::Munmap(address, bytes);
  CountOwnBytes(-static_cast<int64_t>(bytes));
}

size_t OwnRanges(OwnRange* out, size_t capacity) {
  size_t count = 0;
  const size_t used = g_used_entries.load(std::memory_order_acquire);
  for (size_t i = 0; i < used && count < capacity; ++i) {
    const uintptr_t begin = g_entries[i].begin.load(std::memory_order_acquire);
    if (begin <= 1) continue;
    out[count++] = {begin, begin + g_entries[i].bytes.load(std::memory_order_relaxed)};
  }
  return count;
}

// The stack engine maps its rule table itself: it stands below this file.
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
uint64_t own_private_bytes() {
  return own_bytes() - g_ring_bytes.load(std::memory_order_relaxed);
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
  t_counting_faults = true;
  before_ = ThreadMinorFaults();
}

OwnFaultsScope::~OwnFaultsScope() {
  if (before_ < 0) return;
  t_counting_faults = false;
  const int64_t after = ThreadMinorFaults();
  if (after > before_) {
    g_own_minor_faults.fetch_add(static_cast<uint64_t>(after - before_), std::memory_order_relaxed);
  }
}

}  // namespace memtrace
