// Fragmentation: which live blocks keep memory of the allocator resident that is otherwise free.
//
// Two ways, of one mapping (the [heap], a heap of another arena):
//
//   pinned     a resident page with live bytes cannot be given back: its free bytes are kept by
//              the blocks on it, in equal parts
//   enclosed   resident pages without any live byte, below the last live block: the allocator
//              gives back from the end of a heap only (malloc_trim() gives these back as well)
//
// Blocks come in the order of addresses; those with a mapping of their own are left out. What the
// allocator keeps for itself (a thread's cache, an arena's head, some 650 to 2200 bytes at the
// begin of a heap) counts as free on a page with live blocks, for nothing tells of it.

#ifndef MEMTRACE_REPORT_FAULTS_FRAGMENTATION_H_
#define MEMTRACE_REPORT_FAULTS_FRAGMENTATION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "report/faults/by_site_number.h"
#include "report/faults/page_runs.h"

namespace memtrace::report {

struct PinnedBytes {
  uint64_t bytes = 0;
  uint64_t blocks = 0;  // that begin on a page with free bytes
};

class Fragmentation {
 public:
  // `runs`: pages of the allocator, of `page_bytes` each, a power of two. Enclosed are those from
  // `begin` on: the first page of a heap has the allocator's own bookkeeping, and is never given
  // back.
  Fragmentation(const std::vector<PageRun>& runs, uint64_t page_bytes, uint64_t begin)
      : walk_(runs), below_(runs), page_bytes_(page_bytes), begin_(begin) {}

  // A live block of `site` with its header.
  void Add(uint64_t begin, uint64_t end, uint32_t site);
  void Finish();

  // By number, in no order.
  const std::vector<std::pair<uint32_t, PinnedBytes>>& sites() const { return sites_.entries(); }
  uint64_t pinned_bytes() const { return pinned_; }
  uint64_t enclosed_bytes() const { return enclosed_; }
  uint32_t last_site() const { return last_site_; }  // of the last block

 private:
  struct OnPage {
    uint32_t site;
    bool again;  // the block began on a page before
  };

  // Where the page begins.
  uint64_t PageOf(uint64_t address) const { return address & ~(page_bytes_ - 1); }
  void AddToPage(uint64_t page, uint64_t bytes, OnPage block);
  void ClosePage();

  RunWalk walk_, below_;
  const uint64_t page_bytes_;
  const uint64_t begin_;
  uint64_t page_ = UINT64_MAX;           // where the one begins that is being filled
  uint64_t covered_ = 0;                 // of it
  std::vector<OnPage> on_page_;          // each block of it
  BySiteNumber<PinnedBytes> sites_;
  uint64_t pinned_ = 0, enclosed_ = 0;
  bool last_page_used_ = false;          // the one that was closed last is resident
  uint64_t used_pages_ = 0;              // resident pages with live bytes
  uint64_t last_end_ = 0;
  uint32_t last_site_ = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_FRAGMENTATION_H_
