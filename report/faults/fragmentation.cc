#include "report/faults/fragmentation.h"

#include <algorithm>

namespace memtrace::report {

void Fragmentation::Add(uint64_t begin, uint64_t end, uint32_t site) {
  if (end <= begin) return;
  last_site_ = site;
  last_end_ = std::max(last_end_, end);
  const uint64_t first = PageOf(begin), last = PageOf(end - 1);
  AddToPage(first, std::min(end, first + page_bytes_) - begin, {site, /*again=*/false});
  if (first == last) return;
  // Pages in the middle of a large block have nothing free.
  if (last - first > page_bytes_) {
    if (!on_page_.empty()) ClosePage();
    used_pages_ += walk_.Resident(std::max(begin_, first + page_bytes_), last) / page_bytes_;
  }
  AddToPage(last, end - last, {site, /*again=*/true});
}

void Fragmentation::AddToPage(uint64_t page, uint64_t bytes, OnPage block) {
  if (page != page_) {
    if (!on_page_.empty()) ClosePage();
    page_ = page;
  }
  covered_ += bytes;
  on_page_.push_back(block);
}

void Fragmentation::ClosePage() {
  const bool resident = walk_.Resident(page_, page_ + page_bytes_) == page_bytes_;
  last_page_used_ = resident && page_ >= begin_;
  if (resident) {
    if (last_page_used_) ++used_pages_;
    const uint64_t free = page_bytes_ - std::min(covered_, page_bytes_);
    if (free > 0) {
      pinned_ += free;
      const uint64_t share = free / on_page_.size();
      uint64_t left = free - share * on_page_.size();
      for (const OnPage& block : on_page_) {
        PinnedBytes& site = sites_[block.site];
        site.bytes += share + (left > 0 ? 1 : 0);
        if (left > 0) --left;
        if (!block.again) ++site.blocks;
      }
    }
  }
  on_page_.clear();
  covered_ = 0;
}

void Fragmentation::Finish() {
  if (!on_page_.empty()) ClosePage();
  const uint64_t end = PageOf(last_end_);
  const uint64_t resident_pages = end > begin_ ? below_.Resident(begin_, end) / page_bytes_ : 0;
  // The page of the last block's end is in one of the two only when it is whole.
  const uint64_t used = used_pages_ - (last_end_ % page_bytes_ != 0 && last_page_used_ ? 1 : 0);
  enclosed_ = (resident_pages - std::min(resident_pages, used)) * page_bytes_;
}

}  // namespace memtrace::report
