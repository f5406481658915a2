// Dominators: what every way from the root to a node passes.
//
// T. Lengauer, R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph", ACM
// TOPLAS 1 (1979), pages 121-141: the simple variant, with path compression and without
// balancing. O(m log n) for any graph: heaps have lists of millions of blocks, on which the
// simpler iterative algorithms take the square of that. Nothing here recurses.
//
// A Graph has
//   uint32_t size() const              nodes 0 .. size() - 1; 0 is the root
//   uint64_t degree(uint32_t v) const
//   uint32_t next(uint32_t v, uint64_t i) const   the i-th node that v leads to
//
// Memory: 48 bytes a node and 4 bytes an edge while it is computed; 8 bytes a node remain.

#ifndef MEMTRACE_REPORT_LEAK_DOMINATORS_H_
#define MEMTRACE_REPORT_LEAK_DOMINATORS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace memtrace::report::leak {

inline constexpr uint32_t kNoNode = UINT32_MAX;

struct DominatorTree {
  std::vector<uint32_t> of;     // by node: its immediate dominator; kNoNode of the root and of
                                //   what the root does not lead to
  std::vector<uint32_t> order;  // the nodes that the root leads to, each after its dominator
};

template <typename Graph>
class DominatorFinder {
 public:
  explicit DominatorFinder(const Graph& graph) : graph_(graph) {}

  DominatorTree Find() {
    Number();
    CollectPredecessors();
    const auto reached = static_cast<uint32_t>(vertex_.size());
    semi_.resize(reached);
    label_.resize(reached);
    ancestor_.assign(reached, kNoNode);
    dominator_.assign(reached, 0);
    bucket_.assign(reached, kNoNode);
    next_in_bucket_.assign(reached, kNoNode);
    for (uint32_t i = 0; i < reached; ++i) semi_[i] = label_[i] = i;
    // All by number in the order of the search.
    for (uint32_t w = reached; w-- > 1;) {
      for (uint64_t i = first_[w]; i < first_[w + 1]; ++i) {
        semi_[w] = std::min(semi_[w], semi_[Evaluate(predecessors_[i])]);
      }
      next_in_bucket_[w] = std::exchange(bucket_[semi_[w]], w);
      const uint32_t parent = parent_[w];
      ancestor_[w] = parent;
      for (uint32_t v = std::exchange(bucket_[parent], kNoNode); v != kNoNode;
           v = next_in_bucket_[v]) {
        const uint32_t u = Evaluate(v);
        dominator_[v] = semi_[u] < semi_[v] ? u : parent;
      }
    }
    DominatorTree tree;
    tree.of.assign(graph_.size(), kNoNode);
    for (uint32_t w = 1; w < reached; ++w) {
      if (dominator_[w] != semi_[w]) dominator_[w] = dominator_[dominator_[w]];
      tree.of[vertex_[w]] = vertex_[dominator_[w]];
    }
    tree.order = std::move(vertex_);  // a dominator has the lower number
    return tree;
  }

 private:
  // Depth first. Fills number_, vertex_, parent_.
  void Number() {
    number_.assign(graph_.size(), kNoNode);
    struct Step {
      uint32_t node;
      uint64_t next;
    };
    std::vector<Step> path;
    const auto enter = [&](uint32_t node, uint32_t parent) {
      number_[node] = static_cast<uint32_t>(vertex_.size());
      vertex_.push_back(node);
      parent_.push_back(parent);
      path.push_back({node, 0});
    };
    if (graph_.size() != 0) enter(0, kNoNode);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next == graph_.degree(step.node)) {
        path.pop_back();
        continue;
      }
      const uint32_t from = number_[step.node];
      const uint32_t to = graph_.next(step.node, step.next++);
      if (number_[to] == kNoNode) enter(to, from);
    }
  }

  void CollectPredecessors() {
    const size_t reached = vertex_.size();
    first_.assign(reached + 1, 0);
    const auto each_edge = [&](auto function) {
      for (size_t v = 0; v < reached; ++v) {
        const uint64_t degree = graph_.degree(vertex_[v]);
        for (uint64_t i = 0; i < degree; ++i) {
          function(static_cast<uint32_t>(v), number_[graph_.next(vertex_[v], i)]);
        }
      }
    };
    each_edge([&](uint32_t, uint32_t to) { ++first_[to]; });
    uint64_t sum = 0;
    for (uint64_t& count : first_) count = sum += count;  // one behind its last, for now
    predecessors_.resize(sum);
    each_edge([&](uint32_t from, uint32_t to) { predecessors_[--first_[to]] = from; });
  }

  // The node of lowest semidominator on the way from v to the top of its tree, the top left out.
  uint32_t Evaluate(uint32_t v) {
    if (ancestor_[v] == kNoNode) return label_[v];
    for (uint32_t u = v; ancestor_[ancestor_[u]] != kNoNode; u = ancestor_[u]) way_.push_back(u);
    for (; !way_.empty(); way_.pop_back()) {
      const uint32_t u = way_.back(), above = ancestor_[u];
      if (semi_[label_[above]] < semi_[label_[u]]) label_[u] = label_[above];
      ancestor_[u] = ancestor_[above];
    }
    return label_[v];
  }

  const Graph& graph_;
  std::vector<uint32_t> number_, vertex_, parent_;
  std::vector<uint64_t> first_;  // by number, into predecessors_
  std::vector<uint32_t> predecessors_;
  std::vector<uint32_t> semi_, label_, ancestor_, dominator_, bucket_, next_in_bucket_;
  std::vector<uint32_t> way_;
};

template <typename Graph>
DominatorTree FindDominators(const Graph& graph) {
  return DominatorFinder<Graph>(graph).Find();
}

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_DOMINATORS_H_
