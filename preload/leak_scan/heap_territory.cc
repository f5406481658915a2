#include "preload/leak_scan/heap_territory.h"

#include "preload/own_memory.h"

namespace memtrace {

constinit HeapTerritory g_heap_territory;

void HeapTerritory::Set(uintptr_t granule) {
  if (granule / kPageBits >= kPages) return;
  std::atomic<Words*>& page = pages_[granule / kPageBits];
  Words* words = page.load(std::memory_order_acquire);
  if (words == nullptr) {
    auto* const made = static_cast<Words*>(OwnMap(arch::kPageBytes, /*touch=*/false));
    if (made == nullptr) return;
    if (page.compare_exchange_strong(words, made, std::memory_order_acq_rel)) {
      words = made;
    } else {
      OwnUnmap(made, arch::kPageBytes);
    }
  }
  words[granule % kPageBits / 64].fetch_or(uint64_t{1} << (granule % 64),
                                           std::memory_order_relaxed);
  used_.store(true, std::memory_order_relaxed);
}

}  // namespace memtrace
