// SiteFamilies: call sites that grow together, if at all, though none of them does alone.
//
//   ByRecursion    A function that calls itself allocates by another stack at each depth, and by each way
//                  there: a tree of 3000 nodes has 3000 call sites of a block each. Stacks of the same frames,
//                  however often and in which order, are a family, if there is a frame twice in one of them.
//   ByReallocs     A buffer that several places make larger is now one's, now the other's. Sites that take
//                  blocks from each other by realloc are a family.
//
// Memory: 12 bytes a site. Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_SITE_FAMILIES_H_
#define MEMTRACE_REPORT_GROWTH_SITE_FAMILIES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "report/findings/growth.h"
#include "report/findings/site.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {

class SiteFamilies {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  static SiteFamilies ByRecursion(std::span<const Site> sites, const StackTable& stacks);
  // `moves`: sites that a block went from and to.
  static SiteFamilies ByReallocs(size_t sites,
                                 std::span<const std::pair<uint32_t, uint32_t>> moves);

  size_t size() const { return families_.size(); }
  uint32_t Of(size_t site) const { return family_of_.empty() ? kNone : family_of_[site]; }
  // Sites, in order; two at least.
  const std::vector<uint32_t>& members(size_t family) const { return families_[family]; }

  // Makes one site of the members, for GrowthFinder::Judge(): times, amounts, lifetimes and the
  // series, all of which `sites` must have by now.
  Site Together(size_t family, std::span<const Site> sites) const;
  // The part of the family's growth that falls to `member`, in proportion to what it has of the
  // live bytes or, where all blocks were freed at the exit, of all bytes allocated.
  static Growth ShareOf(Growth growth, const Site& together, const Site& member);

 private:
  // Sites of one key, where two at least have it; `keys[i]` is that of site i, kNoKey of none.
  static constexpr uint64_t kNoKey = 0;
  static SiteFamilies OfKeys(std::span<const uint64_t> keys);

  std::vector<uint32_t> family_of_;  // empty: there are no families
  std::vector<std::vector<uint32_t>> families_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_SITE_FAMILIES_H_
