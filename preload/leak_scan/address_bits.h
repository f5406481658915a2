// AddressBits: a bit for each granule of the address space, 2^kShift bytes each. Kept in pages, and
// pages that point to them, which are mapped when the first bit below them is set: what is used
// of the address space costs a page for 32768 granules. Where all of these are set by one call
// there is a mark in the page's place, so that a program may tell of its terabytes.
//
// Threads: any, at any time. Async-signal-safe. No lock; pages are never given back.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_ADDRESS_BITS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_ADDRESS_BITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
  bool Has(uintptr_t granule) const { return HasIn(Find(granule), granule); }

  // [first, end). What there is no memory for is not set.
  void Set(uintptr_t first, uintptr_t end) {
    ForEachPart<kPageBits>(first, end, [this](uintptr_t begin, uintptr_t part_end) {
      std::atomic<Words*>* const place = MakePlace(begin);
      if (place == nullptr) return;
      Words* words = place->load(std::memory_order_acquire);
      if (words == nullptr && part_end - begin == kPageBits &&
          place->compare_exchange_strong(words, &all_set_, std::memory_order_acq_rel)) {
        return;
      }
      if (words == nullptr) words = MakePage(place);
      if (words == nullptr || words == &all_set_) return;
      ForEachWord(begin, part_end, [words](size_t word, uint64_t mask) {
        words[word].fetch_or(mask, std::memory_order_relaxed);
      });
    });
  }
  // Also of half the address space, as an munmap() may say: few of its pages are there.
  void Clear(uintptr_t first, uintptr_t end) {
    ForEachPart<kPageBits>(first, end, [this](uintptr_t begin, uintptr_t part_end) {
      std::atomic<Words*>* const place = FindPlace(begin);
      if (place == nullptr) return;
      Words* words = place->load(std::memory_order_acquire);
      if (words == &all_set_) words = TakeMark(place, part_end - begin == kPageBits);
      if (words == nullptr) return;
      ForEachWord(begin, part_end, [words](size_t word, uint64_t mask) {
        words[word].fetch_and(~mask, std::memory_order_relaxed);
      });
    });
  }

  // visit(begin, end) for each stretch of the addresses [begin, end) whose
  // granules it has, ascending.
  template <typename Visit>
  void ForEachStretch(uintptr_t begin, uintptr_t end, Visit visit) const {
    if (end > uintptr_t{1} << arch::kAddressBits) return;
    while (begin < end) {
      uintptr_t next;
      const bool has = Look(begin, end, &next);
      uintptr_t behind = next;
      while (has && next < end && Look(next, end, &behind)) next = behind;
      if (has) visit(begin, next);
      begin = behind;
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

  std::atomic<Words*>* FindPlace(uintptr_t granule) const {
    if (granule >= kGranules) return nullptr;
    Pages* const pages = top_[granule / kPageBits / kPagePages].load(std::memory_order_acquire);
    return pages == nullptr ? nullptr : &pages[granule / kPageBits % kPagePages];
  }
  std::atomic<Words*>* MakePlace(uintptr_t granule) {
    if (std::atomic<Words*>* const place = FindPlace(granule); place != nullptr) return place;
    return MakePage(&top_[granule / kPageBits / kPagePages]) == nullptr ? nullptr
                                                                        : FindPlace(granule);
  }
  Words* Find(uintptr_t granule) const {
    const std::atomic<Words*>* const place = FindPlace(granule);
    return place == nullptr ? nullptr : place->load(std::memory_order_acquire);
  }

  bool HasIn(const Words* words, uintptr_t granule) const {
    if (words == nullptr) return false;
    if (words == &all_set_) return true;
    return (words[granule % kPageBits / 64].load(std::memory_order_relaxed) >> (granule % 64) &
            1) != 0;
  }

  // Whether `at` has its bit, and all up to `*next`, the end of its granule or, where its page is
  // alike, of that; at most `end`.
  bool Look(uintptr_t at, uintptr_t end, uintptr_t* next) const {
    const uintptr_t granule = at >> kShift;
    const Words* const words = Find(granule);
    const bool alike = words == nullptr || words == &all_set_;
    const uintptr_t behind = ((alike ? granule | (kPageBits - 1) : granule) + 1) << kShift;
    *next = behind < end ? behind : end;
    return HasIn(words, granule);
  }

  // Slow: takes the mark from `*place`, of which some bits, or `all`, are to be cleared. Returns
  // the page in which to clear them; null: there is none any more. Where there is no memory for
  // one, the others are cleared as well.
  [[gnu::noinline]] Words* TakeMark(std::atomic<Words*>* place, bool all) {
    Words* made = nullptr;
    if (!all) {
      const OwnFaultsScope faults;
      made = static_cast<Words*>(OwnMap(arch::kPageBytes, /*touch=*/true));
      if (made != nullptr) std::memset(static_cast<void*>(made), 0xff, arch::kPageBytes);
    }
    Words* words = &all_set_;
    if (place->compare_exchange_strong(words, made, std::memory_order_acq_rel)) return made;
    if (made != nullptr) OwnUnmap(made, arch::kPageBytes);
    return words == &all_set_ ? nullptr : words;
  }

  // In the place of a page: all its bits are set.
  static inline constinit Words all_set_{};

  std::atomic<Pages*> top_[kTop] = {};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_ADDRESS_BITS_H_
