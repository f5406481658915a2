#include "report/leak/glib_blocks.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace memtrace::report::leak {
namespace {

constexpr uint64_t kPointer = 8;
// gslice.c: what malloc is thought to need beside a slab, and where in a slab its links are.
constexpr uint64_t kPadding = 2 * kPointer;
constexpr uint64_t kNextFromEnd = 4 * kPointer, kPreviousFromEnd = 3 * kPointer;
constexpr uint64_t kLeastSlab = 128;

class GLibBlocks {
 public:
  explicit GLibBlocks(const HeapGraph& graph) : graph_(graph), is_(graph.size(), Pointer::kInterior) {}

  void FindObjects() {
    std::vector<bool> is_class(graph_.size());
    bool any = false;
    for (uint32_t block = 0; block < graph_.size(); ++block) {
      is_class[block] = IsClass(block);
      any |= is_class[block];
    }
    if (!any) return;
    for (uint32_t block = 0; block < graph_.size(); ++block) {
      for (const HeapEdge& edge : graph_.EdgesOf(block)) {
        if (edge.word != 0 && edge.how() == Pointer::kStart && is_class[edge.to]) is_[block] = Pointer::kGObject;
      }
    }
  }

  void FindSlabs() {
    for (uint32_t block = 0; block < graph_.size(); ++block) {
      const uint64_t slab = SlabBytes(block);
      if (slab == 0) continue;
      if (LeadsToSlab(block, slab - kNextFromEnd) && LeadsToSlab(block, slab - kPreviousFromEnd)) {
        is_[block] = Pointer::kGSlice;
      }
    }
  }

  Pointer Of(uint32_t block) const { return is_[block]; }

 private:
  bool LeadsToStart(uint32_t from, uint32_t to) const {
    const auto edges = graph_.EdgesOf(from);
    return std::any_of(edges.begin(), edges.end(), [to](const HeapEdge& edge) {
      return edge.to == to && edge.how() == Pointer::kStart;
    });
  }

  bool IsClass(uint32_t block) const {
    for (const HeapEdge& edge : graph_.EdgesOf(block)) {
      if (edge.word == 0) return edge.how() == Pointer::kStart && IsTypeNode(edge.to, block);
    }
    return false;
  }

  bool IsTypeNode(uint32_t node, uint32_t of_class) const {
    if (node == of_class || !LeadsToStart(node, node)) return false;
    const auto edges = graph_.EdgesOf(node);
    return std::any_of(edges.begin(), edges.end(), [&](const HeapEdge& edge) {
      return edge.to != node && edge.how() == Pointer::kStart && LeadsToStart(edge.to, of_class);
    });
  }

  // 0: it is of another size or at another place.
  uint64_t SlabBytes(uint32_t block) const {
    const uint64_t bytes = graph_.blocks().bytes(block) + kPadding;
    return bytes >= kLeastSlab && std::has_single_bit(bytes) && graph_.blocks().start(block) % bytes == 0 ? bytes : 0;
  }

  bool LeadsToSlab(uint32_t block, uint64_t offset) const {
    const auto edges = graph_.EdgesOf(block);
    return std::any_of(edges.begin(), edges.end(), [&](const HeapEdge& edge) {
      return edge.word == offset / kPointer && edge.how() == Pointer::kInterior && SlabBytes(edge.to) != 0;
    });
  }

  const HeapGraph& graph_;
  std::vector<Pointer> is_;  // by block; kInterior: nothing of GLib's
};

}  // namespace

void FindGLibBlocks(HeuristicSet set, HeapGraph* graph) {
  GLibBlocks blocks(*graph);
  if ((set >> static_cast<int>(Pointer::kGObject) & 1) != 0) blocks.FindObjects();
  if ((set >> static_cast<int>(Pointer::kGSlice) & 1) != 0) blocks.FindSlabs();
  graph->TakeInteriorPointers([&](uint32_t block) { return blocks.Of(block); });
}

}  // namespace memtrace::report::leak
