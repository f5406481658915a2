#include "report/leak/marker.h"

#include <utility>

namespace memtrace::report::leak {
namespace {

class Flood {
 public:
  explicit Flood(const HeapGraph& graph) : graph_(graph) {
    marks_.kind.assign(graph.size(), LeakKind::kDefinite);
    marks_.heuristic.assign(graph.size(), Pointer::kStart);
    marks_.leader.assign(graph.size(), kNoBlock);
    marks_.indirect.resize(graph.size());
  }

  void FromRoots() {
    for (const RootEdge& edge : graph_.roots()) Meet(edge.to, edge.how, true);
    while (!stack_.empty()) {
      const uint32_t block = stack_.back();
      stack_.pop_back();
      const bool definite = marks_.kind[block] == LeakKind::kReachable;
      for (const HeapEdge& edge : graph_.EdgesOf(block)) Meet(edge.to, edge.how(), definite);
    }
  }

  // What nothing leads to so far, by ascending address.
  std::vector<uint32_t> Lost() const {
    std::vector<uint32_t> lost;
    for (uint32_t block = 0; block < graph_.size(); ++block) {
      if (marks_.kind[block] == LeakKind::kDefinite) lost.push_back(block);
    }
    return lost;
  }

  void FromLost(uint32_t leader) {
    if (marks_.kind[leader] != LeakKind::kDefinite) return;
    LeakAmount& sum = marks_.indirect[leader];
    stack_.push_back(leader);
    while (!stack_.empty()) {
      const uint32_t block = stack_.back();
      stack_.pop_back();
      for (const HeapEdge& edge : graph_.EdgesOf(block)) {
        if (edge.to == leader || marks_.kind[edge.to] != LeakKind::kDefinite) continue;
        marks_.kind[edge.to] = LeakKind::kIndirect;
        marks_.leader[edge.to] = leader;
        if (!graph_.blocks().block(edge.to).has(HeldBlock::kUncounted)) {
          sum.bytes += graph_.blocks().bytes(edge.to);
          ++sum.blocks;
        }
        // The blocks that it led to hang on this leader now.
        LeakAmount& merged = marks_.indirect[edge.to];
        sum.bytes += merged.bytes;
        sum.blocks += merged.blocks;
        merged = {};
        stack_.push_back(edge.to);
      }
    }
  }

  Marks Take() { return std::move(marks_); }

 private:
  // A pointer to `block`, found in a root or in a block that is (`definite`) reachable
  // by pointers to starts.
  void Meet(uint32_t block, Pointer how, bool definite) {
    LeakKind& kind = marks_.kind[block];
    if (kind == LeakKind::kReachable) {
      if (how == Pointer::kStart) marks_.heuristic[block] = Pointer::kStart;
      return;
    }
    if (definite && how != Pointer::kInterior) {
      kind = LeakKind::kReachable;
      marks_.heuristic[block] = how;
      stack_.push_back(block);
    } else if (kind == LeakKind::kDefinite) {
      kind = LeakKind::kPossible;
      stack_.push_back(block);
    }
  }

  const HeapGraph& graph_;
  Marks marks_;
  std::vector<uint32_t> stack_;
};

}  // namespace

Marks Mark(const HeapGraph& graph, const ArrangeBlocks& arrange) {
  Flood flood(graph);
  flood.FromRoots();
  std::vector<uint32_t> lost = flood.Lost();
  if (arrange) arrange(&lost);
  for (const uint32_t block : lost) flood.FromLost(block);
  return flood.Take();
}

}  // namespace memtrace::report::leak
