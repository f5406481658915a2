#include "report/leak/block_index.h"

#include <algorithm>
#include <utility>

#include "report/model/blocks_by_address.h"

namespace memtrace::report::leak {
namespace {

bool IsBefore(uint64_t address, const HeldBlock& block) { return address < block.address(); }

}  // namespace

BlockIndex::BlockIndex(std::vector<HeldBlock> blocks, bool usable)
    : usable_(usable), blocks_(std::move(blocks)) {
  if (blocks_.size() >= kNoBlock) blocks_.resize(kNoBlock - 1);
  SortByAddress(blocks_);
  for (uint32_t i = 0; i < size();) {
    const uint64_t key = start(i) >> kGranuleBits;
    Granule granule;
    granule.first = i;
    while (i < size() && start(i) >> kGranuleBits == key) ++i;
    granule.end = i;
    if (granule.end - granule.first > kManyBlocks) {
      granule.pages = static_cast<uint32_t>(pages_.size());
      uint32_t next = granule.first;
      for (uint32_t page = 0; page < kPages; ++page) {
        const uint64_t begin = key << kGranuleBits | uint64_t{page} << kPageBits;
        while (next < granule.end && start(next) < begin) ++next;
        pages_.push_back(next);
      }
      pages_.push_back(granule.end);
    }
    granules_.emplace(key, granule);
  }
}

uint32_t BlockIndex::LastAtOrBefore(uint64_t address) const {
  const auto at = granules_.find(address >> kGranuleBits);
  auto begin = blocks_.begin(), end = blocks_.end();
  if (at != granules_.end()) {
    uint32_t first = at->second.first, last = at->second.end;
    if (at->second.pages != UINT32_MAX) {
      const size_t page = at->second.pages + (address >> kPageBits & (kPages - 1));
      first = pages_[page];
      last = pages_[page + 1];
    }
    begin = blocks_.begin() + first;
    end = blocks_.begin() + last;
  }
  const auto after = std::upper_bound(begin, end, address, IsBefore);
  // The block before those of this page or granule may reach into it.
  return after == blocks_.begin() ? kNoBlock
                                  : static_cast<uint32_t>(after - blocks_.begin() - 1);
}

}  // namespace memtrace::report::leak
