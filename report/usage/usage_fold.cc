#include "report/usage/usage_fold.h"

#include <algorithm>

namespace memtrace::report {

void UsageFold::Reallocated(uint32_t old_site, uint32_t site, bool copied, uint64_t old_size,
                            uint64_t size, uint32_t chain) {
  SiteMoves& moves = MovesOf(site);
  ++moves.reallocations;
  moves.grown += size > old_size;
  moves.longest_chain = std::max(moves.longest_chain, chain);
  if (copied) {
    ++moves.moved;
    moves.copied_bytes += std::min(old_size, size);
  }
  if (old_site != site) ++handed_over_[{old_site, site}];
}

}  // namespace memtrace::report
