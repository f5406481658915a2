#include "report/usage/usage_fold.h"

#include <algorithm>

namespace memtrace::report {

void UsageFold::Reallocated(uint32_t old_site, uint32_t site, uint64_t old_address,
                            uint64_t address, uint64_t old_size, uint64_t size,
                            uint32_t earlier) {
  const uint32_t length = earlier + 1;
  chains_[address] = length;
  SiteMoves& moves = moves_[site];
  ++moves.reallocations;
  moves.grown += size > old_size;
  moves.longest_chain = std::max(moves.longest_chain, length);
  if (address != old_address) {
    ++moves.moved;
    moves.copied_bytes += std::min(old_size, size);
  }
  if (old_site != site) ++handed_over_[{old_site, site}];
}

}  // namespace memtrace::report
