// RecursionFamilies: call sites that are one but for how deep a recursion was.
//
// A function that calls itself allocates by another stack at each depth, and by each way there: a tree of
// 3000 nodes has 3000 call sites of a block each, none of which grows. Stacks of the same frames, however often
// and in which order, are a family, if there is a frame twice in one of them.
//
// Memory: 12 bytes a site. Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_RECURSION_H_
#define MEMTRACE_REPORT_GROWTH_RECURSION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/analysis.h"
#include "report/stack_table.h"

namespace memtrace::report {

class RecursionFamilies {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  RecursionFamilies(std::span<const Site> sites, const StackTable& stacks);

  size_t size() const { return families_.size(); }
  uint32_t Of(size_t site) const { return family_of_[site]; }
  // Sites, in order; two at least.
  const std::vector<uint32_t>& members(size_t family) const { return families_[family]; }

  // What they are together, for GrowthFinder::Judge(): times, amounts, lifetimes and the series. `sites` have
  // theirs by now.
  Site Together(size_t family, std::span<const Site> sites) const;

  // Of the family's growth what falls to a member: by what it has of the live bytes, or where all were freed
  // at the exit of all bytes.
  static Growth ShareOf(Growth growth, const Site& together, const Site& member);

 private:
  std::vector<uint32_t> family_of_;
  std::vector<std::vector<uint32_t>> families_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_RECURSION_H_
