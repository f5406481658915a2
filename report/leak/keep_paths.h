// KeepPaths: for each block a short chain of pointers that keeps it, from a root.
//
//   still reachable   a shortest chain from a root over pointers to starts alone
//   possibly lost     a chain from a root, as short as those of the reachable blocks it passes
//   indirectly lost   a shortest chain from the lost block that leads to it
//   definitely lost   none: the chain is the block itself
//
// Of chains of one length those win that begin at a root of a better kind (RootGroup::Kind),
// then at the lower place. Memory: 16 bytes a block.

#ifndef MEMTRACE_REPORT_LEAK_KEEP_PATHS_H_
#define MEMTRACE_REPORT_LEAK_KEEP_PATHS_H_

#include <cstdint>
#include <vector>

#include "report/leak/marker.h"
#include "report/leak/root_groups.h"

namespace memtrace::report::leak {

// For each block the definitely lost block that it hangs on in the end, itself or another;
// kNoBlock if it is not lost.
std::vector<uint32_t> FinalLeaders(const Marks& marks);

class KeepPaths {
 public:
  static constexpr uint32_t kNone = kNoBlock;

  KeepPaths(const HeapGraph& graph, const Marks& marks, const RootGroups& roots);

  // The root that the chain to `block` begins at (index in HeapGraph::roots());
  // kNone for a lost block.
  uint32_t RootOf(uint32_t block) const { return is_lost_[block] ? kNone : begin_[block]; }
  // The block that the chain to a lost block begins at, which may be itself;
  // kNone if it is not lost.
  uint32_t LeaderOf(uint32_t block) const { return is_lost_[block] ? begin_[block] : kNone; }

  // The blocks of the chain, from the first to `block`; each but the first is pointed to by
  // the word at `offset` of the one before.
  struct Step {
    uint32_t block = 0;
    uint64_t offset = 0;
    Pointer how = Pointer::kStart;
  };
  std::vector<Step> ChainOf(uint32_t block) const;

  // All blocks, those with shorter chains first among each kind.
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  void FollowStarts();
  void FollowRest();
  void FollowLost(const Marks& marks);
  void Enter(uint32_t block, uint32_t from, uint32_t begin) {
    if (begin_[block] != kNone) return;
    from_[block] = from;
    begin_[block] = begin;
    order_.push_back(block);
  }

  const HeapGraph& graph_;
  std::vector<uint32_t> roots_;  // in order of preference
  std::vector<uint32_t> from_;   // by block: the block before it; kNone of the first
  std::vector<uint32_t> begin_;  // by block: root, or of lost ones leader
  std::vector<bool> is_lost_;
  std::vector<uint32_t> order_;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_KEEP_PATHS_H_
