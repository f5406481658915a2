// SharedPages: which pages of a shared mapping are in memory. A copy of the process has them not in
// its tables yet, so the kernel is asked for each (mincore), which takes 60 ns also where there is
// none: a sparse mapping of 256 GiB would take seconds. So what has no data is passed over where
// its file can be opened, and of the rest no more is asked than kMostAsked.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SHARED_PAGES_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SHARED_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"

namespace memtrace {

class SharedPages {
 public:
  // How many pages are asked about in one scan: those of 64 GiB, which takes a second.
  static constexpr uint64_t kMostAsked = uint64_t{16} << 20;

  explicit SharedPages(uint64_t most_asked = kMostAsked) : most_asked_(most_asked) {}

  // Sets a byte for each of `pages` pages from `begin` on, a part of `mapping`: 1 if it is in
  // memory, or if that cannot be told. False: there are too many pages to ask about.
  bool Find(const ScanMapping& mapping, uintptr_t begin, size_t pages, uint8_t* resident);

  uint64_t asked() const { return asked_; }

 private:
  bool Ask(uintptr_t begin, size_t pages, uint8_t* resident);

  const uint64_t most_asked_;
  uint64_t asked_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SHARED_PAGES_H_
