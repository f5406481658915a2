// Retention: what would go with a block, a root or a set of blocks.
//
// A node *retains* all bytes to which no way leads but through it. The ways begin at a root
// above all roots; it leads to each named root (RootGroups), these to their blocks. What is
// lost has no root: its leaders (marker.h) count as if they had one, so that a lost list is
// retained by its first block; what is not lost is never kept by what is. Start and interior
// pointers are alike here.
//
//   of one node        the bytes of the nodes that it dominates (dominators.h), its own with them
//   of a set of blocks the bytes that no way leads to when all of the set are taken away: more
//                      than its nodes retain one by one where two of them share something
//
// Memory: dominators.h's, and 16 bytes a node of results.

#ifndef MEMTRACE_REPORT_LEAK_RETENTION_H_
#define MEMTRACE_REPORT_LEAK_RETENTION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "report/findings/leaks.h"
#include "report/leak/dominators.h"
#include "report/leak/marker.h"
#include "report/leak/root_groups.h"

namespace memtrace::report::leak {

// The blocks and named roots as one graph: node 0 is above all, then come the named roots,
// then the blocks in their order.
class RetentionGraph {
 public:
  RetentionGraph(const HeapGraph& graph, const Marks& marks, const RootGroups& roots);

  uint32_t size() const { return 1 + groups_ + graph_.size(); }
  uint64_t degree(uint32_t node) const {
    if (node == 0) return groups_ + leaders_.size();
    if (node <= groups_) return first_[node] - first_[node - 1];
    return graph_.EdgesOf(BlockOf(node)).size();
  }
  uint32_t next(uint32_t node, uint64_t i) const {
    if (node == 0)
      return i < groups_ ? static_cast<uint32_t>(i) + 1 : NodeOf(leaders_[i - groups_]);
    if (node <= groups_) return NodeOf(of_groups_[first_[node - 1] + i]);
    const uint32_t block = BlockOf(node), to = graph_.EdgesOf(block)[i].to;
    return is_lost_[block] && !is_lost_[to] ? node : NodeOf(to);  // to itself is no way
  }

  bool IsBlock(uint32_t node) const { return node > groups_; }
  uint32_t BlockOf(uint32_t node) const { return node - groups_ - 1; }
  uint32_t NodeOf(uint32_t block) const { return block + groups_ + 1; }
  uint32_t NodeOfGroup(uint32_t group) const { return group + 1; }
  const HeapGraph& heap() const { return graph_; }

 private:
  const HeapGraph& graph_;
  uint32_t groups_ = 0;
  std::vector<uint32_t> leaders_;    // blocks
  std::vector<bool> is_lost_;        // by block
  std::vector<uint64_t> first_;      // by group, into of_groups_; one more at the end
  std::vector<uint32_t> of_groups_;  // blocks
};

struct Retention {
  DominatorTree tree;
  std::vector<LeakAmount> of;  // by node; of 0: of the whole heap
};

Retention FindRetention(const RetentionGraph& graph);

// The amount of the blocks that no way leads to when those for which `is_taken` is true are not
// there; these included.
LeakAmount RetainedWithout(const RetentionGraph& graph,
                           const std::function<bool(uint32_t block)>& is_taken);

// The nodes that all ways to all of `blocks` pass, the nearest first; without 0 and blocks of
// `blocks` themselves. At most `most`.
std::vector<uint32_t> CommonDominators(const RetentionGraph& graph, const DominatorTree& tree,
                                       const std::vector<uint32_t>& blocks, size_t most);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_RETENTION_H_
