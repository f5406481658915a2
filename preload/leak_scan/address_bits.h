// AddressBits: a bit for each granule of the address space, 2^kShift bytes each. Kept in pages, and
// pages that point to them, which are mapped when the first bit below them is set: what is used
// of the address space costs a page for 32768 granules.
//
// Threads: any, at any time. Async-signal-safe. No lock; pages are never given back.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_ADDRESS_BITS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_ADDRESS_BITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/own_memory.h"

namespace memtrace {

// Slow: a page of zeros for `*place`, unless another thread was first. Null: no memory.
template <typename T>
[[gnu::noinline]] T* MakePage(std::atomic<T*>* place) {
  const OwnFaultsScope faults;
  auto* const made = static_cast<T*>(OwnMap(arch::kPageBytes, /*touch=*/true));
  T* page = nullptr;
  if (made == nullptr) return nullptr;
  if (place->compare_exchange_strong(page, made, std::memory_order_acq_rel)) return made;
  OwnUnmap(made, arch::kPageBytes);
  return page;
}

template <int kShift>
class AddressBits {
 public:
  // A granule is an address >> kShift.
  bool Has(uintptr_t granule) const {
    const Words* const words = Find(granule);
    return words != nullptr &&
           (words[granule % kPageBits / 64].load(std::memory_order_relaxed) >> (granule % 64) &
            1) != 0;
  }

  // [first, end). What there is no memory for is not set.
  void Set(uintptr_t first, uintptr_t end) {
    ForEachPart<kPageBits>(first, end, [this](uintptr_t begin, uintptr_t part_end) {
      if (Words* const words = Make(begin); words != nullptr) {
        ForEachWord(begin, part_end, [words](size_t word, uint64_t mask) {
          words[word].fetch_or(mask, std::memory_order_relaxed);
        });
      }
    });
  }
  // Also of half the address space, as an munmap() may say: few of its pages are there.
  void Clear(uintptr_t first, uintptr_t end) {
    ForEachPart<kPageBits>(first, end, [this](uintptr_t begin, uintptr_t part_end) {
      if (Words* const words = Find(begin); words != nullptr) {
        ForEachWord(begin, part_end, [words](size_t word, uint64_t mask) {
          words[word].fetch_and(~mask, std::memory_order_relaxed);
        });
      }
    });
  }

  // visit(begin, end) for each stretch of the addresses [begin, end) whose
  // granules it has, ascending.
  template <typename Visit>
  void ForEachStretch(uintptr_t begin, uintptr_t end, Visit visit) const {
    if (end > uintptr_t{1} << arch::kAddressBits) return;
    const auto behind = [end](uintptr_t at) {
      const uintptr_t next = ((at >> kShift) + 1) << kShift;
      return next < end ? next : end;
    };
    while (begin < end) {
      uintptr_t next = behind(begin);
      if (Has(begin >> kShift)) {
        while (next < end && Has(next >> kShift)) next = behind(next);
        visit(begin, next);
      }
      begin = next;
    }
  }

 private:
  using Words = std::atomic<uint64_t>;
  using Pages = std::atomic<Words*>;
  static constexpr uintptr_t kGranules = uintptr_t{1} << (arch::kAddressBits - kShift);
  static constexpr size_t kPageBits = arch::kPageBytes * 8;  // granules of a page
  static constexpr size_t kPagePages = arch::kPageBytes / sizeof(Pages);
  static constexpr size_t kTop =
      (kGranules + kPageBits * kPagePages - 1) / (kPageBits * kPagePages);

  // visit(begin, end) for each stretch of kBits, a power of two, that has some of [first, end).
  template <uintptr_t kBits, typename Visit>
  static void ForEachPart(uintptr_t first, uintptr_t end, Visit visit) {
    if (end > kGranules) end = kGranules;
    while (first < end) {
      const uintptr_t next = (first | (kBits - 1)) + 1 < end ? (first | (kBits - 1)) + 1 : end;
      visit(first, next);
      first = next;
    }
  }

  // visit(word, mask) for each word of a page that has some of [first, end).
  template <typename Visit>
  static void ForEachWord(uintptr_t first, uintptr_t end, Visit visit) {
    ForEachPart<64>(first, end, [&](uintptr_t begin, uintptr_t part_end) {
      const uint64_t bits =
          part_end - begin == 64 ? ~uint64_t{0} : (uint64_t{1} << (part_end - begin)) - 1;
      visit(begin % kPageBits / 64, bits << (begin % 64));
    });
  }

  Words* Find(uintptr_t granule) const {
    if (granule >= kGranules) return nullptr;
    const Pages* const pages =
        top_[granule / kPageBits / kPagePages].load(std::memory_order_acquire);
    if (pages == nullptr) return nullptr;
    return pages[granule / kPageBits % kPagePages].load(std::memory_order_acquire);
  }
  Words* Make(uintptr_t granule) {
    if (Words* const words = Find(granule); words != nullptr) return words;
    std::atomic<Pages*>& top = top_[granule / kPageBits / kPagePages];
    Pages* pages = top.load(std::memory_order_acquire);
    if (pages == nullptr) pages = MakePage(&top);
    return pages == nullptr ? nullptr : MakePage(&pages[granule / kPageBits % kPagePages]);
  }

  std::atomic<Pages*> top_[kTop] = {};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_ADDRESS_BITS_H_
