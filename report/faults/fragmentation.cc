#include "report/faults/fragmentation.h"

#include <algorithm>

namespace memtrace::report {

void Fragmentation::Add(uint64_t begin, uint64_t end, uint32_t site) {
  if (end <= begin) return;
  last_site_ = site;
  last_end_ = std::max(last_end_, end);
  const uint64_t first = begin / page_bytes_, last = (end - 1) / page_bytes_;
  AddToPage(first, OverlapOf(begin, end, first * page_bytes_, (first + 1) * page_bytes_), site,
            /*again=*/false);
  if (first == last) return;
  // Pages in the middle of a large block have nothing free.
  if (last - first > 1) {
    if (!sites_of_page_.empty()) ClosePage();
    used_pages_ += walk_.Resident(std::max(begin_, (first + 1) * page_bytes_), last * page_bytes_) /
                   page_bytes_;
  }
  AddToPage(last, end - last * page_bytes_, site, /*again=*/true);
}

// `again`: the block is on the page before as well.
void Fragmentation::AddToPage(uint64_t page, uint64_t bytes, uint32_t site, bool again) {
  if (page != page_) {
    if (!sites_of_page_.empty()) ClosePage();
    page_ = page;
  }
  covered_ += bytes;
  sites_of_page_.push_back(site);
  again_.push_back(again);
}

void Fragmentation::ClosePage() {
  const uint64_t begin = page_ * page_bytes_;
  const bool resident = walk_.Resident(begin, begin + page_bytes_) == page_bytes_;
  last_page_used_ = resident && begin >= begin_;
  if (resident) {
    if (last_page_used_) ++used_pages_;
    const uint64_t free = page_bytes_ - std::min(covered_, page_bytes_);
    if (free > 0) {
      pinned_ += free;
      const uint64_t share = free / sites_of_page_.size();
      uint64_t left = free - share * sites_of_page_.size();
      for (size_t i = 0; i < sites_of_page_.size(); ++i) {
        PinnedBytes& site = sites_[sites_of_page_[i]];
        site.bytes += share + (left > 0 ? 1 : 0);
        if (left > 0) --left;
        if (!again_[i]) ++site.blocks;
      }
    }
  }
  sites_of_page_.clear();
  again_.clear();
  covered_ = 0;
}

void Fragmentation::Finish() {
  if (!sites_of_page_.empty()) ClosePage();
  const uint64_t end = last_end_ / page_bytes_ * page_bytes_;
  const uint64_t resident_pages = end > begin_ ? below_.Resident(begin_, end) / page_bytes_ : 0;
  // The page of the last block's end is in one of the two only when it is whole.
  const uint64_t used = used_pages_ - (last_end_ % page_bytes_ != 0 && last_page_used_ ? 1 : 0);
  enclosed_ = (resident_pages - std::min(resident_pages, used)) * page_bytes_;
}

}  // namespace memtrace::report
