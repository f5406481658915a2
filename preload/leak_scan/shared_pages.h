// SharedPages: which pages of a shared mapping are in memory. A copy of the process has them not in
// its tables yet, so the kernel is asked for each (mincore), which takes 60 ns also where there is
// none: a sparse mapping of 256 GiB would take seconds. So what has no data is passed over where
// its file can be opened, and of the rest no more is asked than kMostAsked.
//
// Of huge pages (hugetlbfs, MAP_HUGETLB, SHM_HUGETLB) mincore() says only what is in the tables of
// the one who asks, and a copy of the process has none of them there. To touch one that is not
// there takes it from the machine's few, or ends in SIGBUS. So the file is read instead, which
// gives zeros where it has no page; and where it may not be opened, the tables of the process
// itself are looked at.

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

  // `in_copy`: this is a copy of the process.
  explicit SharedPages(uint64_t most_asked = kMostAsked, bool in_copy = false)
      : most_asked_(most_asked), in_copy_(in_copy) {}

  // Sets a byte for each of `pages` pages from `begin` on, a part of `mapping`: its lowest bit if
  // it is in memory, or if that cannot be told; or kMayNotRead. False: there are too many pages to
  // ask about.
  static constexpr uint8_t kMayNotRead = 2;  // a huge page that may be there, or may not
  bool Find(const ScanMapping& mapping, uintptr_t begin, size_t pages, uint8_t* resident);

  uint64_t asked() const { return asked_; }

 private:
  bool Ask(uintptr_t begin, size_t pages, uint8_t* resident);
  bool FindHuge(const ScanMapping& mapping, uintptr_t begin, size_t pages, uint8_t* resident);
  bool HasContent(long fd, uint64_t offset, size_t pages, uint8_t* state);
  void AskProcess(uintptr_t begin, size_t pages, uint8_t* resident);

  const uint64_t most_asked_;
  const bool in_copy_;
  uint64_t asked_ = 0;
  uint64_t piece_[(64 << 10) / sizeof(uint64_t)];  // of a file, or of a page map
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SHARED_PAGES_H_
