#include "report/leak/retention.h"

namespace memtrace::report::leak {

RetentionGraph::RetentionGraph(const HeapGraph& graph, const Marks& marks, const RootGroups& roots)
    : graph_(graph), groups_(roots.size()), is_lost_(graph.size()) {
  for (uint32_t block = 0; block < graph.size(); ++block) {
    is_lost_[block] = marks.kind[block] == LeakKind::kDefinite ||
                      marks.kind[block] == LeakKind::kIndirect;
    if (marks.kind[block] == LeakKind::kDefinite) leaders_.push_back(block);
  }
  first_.assign(size_t{groups_} + 1, 0);
  for (size_t i = 0; i < graph.roots().size(); ++i) ++first_[roots.GroupOf(i) + 1];
  for (uint32_t i = 0; i < groups_; ++i) first_[i + 1] += first_[i];
  of_groups_.resize(graph.roots().size());
  std::vector<uint64_t> next(first_.begin(), first_.end() - 1);
  for (size_t i = 0; i < graph.roots().size(); ++i) {
    of_groups_[next[roots.GroupOf(i)]++] = graph.roots()[i].to;
  }
}

Retention FindRetention(const RetentionGraph& graph) {
  Retention result;
  result.tree = FindDominators(graph);
  result.of.resize(graph.size());
  for (uint32_t block = 0; block < graph.heap().size(); ++block) {
    result.of[graph.NodeOf(block)] = {graph.heap().blocks().bytes(block), 1};
  }
  const std::vector<uint32_t>& order = result.tree.order;
  for (size_t i = order.size(); i-- > 1;) {
    LeakAmount& dominator = result.of[result.tree.of[order[i]]];
    dominator.bytes += result.of[order[i]].bytes;
    dominator.blocks += result.of[order[i]].blocks;
  }
  return result;
}

LeakAmount RetainedWithout(const RetentionGraph& graph,
                           const std::function<bool(uint32_t block)>& is_taken) {
  std::vector<bool> met(graph.size());
  std::vector<uint32_t> stack = {0};
  met[0] = true;
  LeakAmount all, left;
  for (uint32_t block = 0; block < graph.heap().size(); ++block) {
    all.bytes += graph.heap().blocks().bytes(block);
    ++all.blocks;
    if (is_taken(block)) met[graph.NodeOf(block)] = true;  // as if it had been passed
  }
  while (!stack.empty()) {
    const uint32_t node = stack.back();
    stack.pop_back();
    if (graph.IsBlock(node)) {
      left.bytes += graph.heap().blocks().bytes(graph.BlockOf(node));
      ++left.blocks;
    }
    for (uint64_t i = graph.degree(node); i-- > 0;) {
      const uint32_t to = graph.next(node, i);
      if (met[to]) continue;
      met[to] = true;
      stack.push_back(to);
    }
  }
  return {all.bytes - left.bytes, all.blocks - left.blocks};
}

std::vector<uint32_t> CommonDominators(const RetentionGraph& graph, const DominatorTree& tree,
                                       const std::vector<uint32_t>& blocks, size_t most) {
  std::vector<uint32_t> below(graph.size());  // so many of `blocks` are dominated by a node
  std::vector<bool> is_one(graph.size());
  for (const uint32_t block : blocks) {
    ++below[graph.NodeOf(block)];
    is_one[graph.NodeOf(block)] = true;
  }
  for (size_t i = tree.order.size(); i-- > 1;) {
    below[tree.of[tree.order[i]]] += below[tree.order[i]];
  }
  std::vector<uint32_t> nodes;
  // The nodes that dominate all of the blocks form a chain, in which the last of the
  // order is the nearest.
  for (size_t i = tree.order.size(); i-- > 1 && nodes.size() < most;) {
    const uint32_t node = tree.order[i];
    if (below[node] == blocks.size() && !is_one[node]) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace memtrace::report::leak
