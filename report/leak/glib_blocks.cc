#include "report/leak/glib_blocks.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

namespace memtrace::report::leak {
namespace {

constexpr uint64_t kPointer = 8;
// gslice.c: what malloc is thought to need beside a slab, and where in a slab its links are.
constexpr uint64_t kPadding = 2 * kPointer;
constexpr uint64_t kNextFromEnd = 4 * kPointer, kPreviousFromEnd = 3 * kPointer;
constexpr uint64_t kLeastSlab = 128;
constexpr size_t kMostPointers = 256;  // supertypes and all

class GLibBlocks {
 public:
  explicit GLibBlocks(const HeapGraph& graph)
      : graph_(graph), is_(graph.size(), Pointer::kInterior) {}

  void FindObjects() {
    const std::vector<bool> is_class = Classes();
    if (is_class.empty()) return;
    for (uint32_t block = 0; block < graph_.size(); ++block) {
      for (const HeapEdge& edge : graph_.EdgesOf(block)) {
        if (edge.word != 0 && edge.how() == Pointer::kStart && is_class[edge.to])
          is_[block] = Pointer::kGObject;
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
  // From the nodes on, of which there are few: nearly no block leads to itself.
  // Empty: there is none.
  std::vector<bool> Classes() const {
    std::vector<bool> is_class;
    for (uint32_t node = 0; node < graph_.size(); ++node) {
      if (!LeadsToStart(node, node)) continue;
      for (const HeapEdge& to_data : Few(node)) {
        if (to_data.to == node || to_data.how() != Pointer::kStart) continue;
        for (const HeapEdge& to_class : Few(to_data.to)) {
          if (to_class.to == node || to_class.how() != Pointer::kStart ||
              !BeginsWith(to_class.to, node))
            continue;
          is_class.resize(graph_.size());
          is_class[to_class.to] = true;
        }
      }
    }
    return is_class;
  }

  // The pointers of a block, if they are few enough to be GLib's data about a type. A large table
  // is none, and would be gone through again and again.
  std::span<const HeapEdge> Few(uint32_t block) const {
    const auto edges = graph_.EdgesOf(block);
    return edges.size() <= kMostPointers ? edges : edges.first(0);
  }

  bool LeadsToStart(uint32_t from, uint32_t to) const {
    const auto edges = Few(from);
    return std::any_of(edges.begin(), edges.end(), [to](const HeapEdge& edge) {
      return edge.to == to && edge.how() == Pointer::kStart;
    });
  }

  // By its first word.
  bool BeginsWith(uint32_t from, uint32_t to) const {
    const auto edges = Few(from);
    return std::any_of(edges.begin(), edges.end(), [to](const HeapEdge& edge) {
      return edge.word == 0 && edge.to == to && edge.how() == Pointer::kStart;
    });
  }

  // 0: it is of another size or at another place.
  uint64_t SlabBytes(uint32_t block) const {
    const uint64_t bytes = graph_.blocks().bytes(block) + kPadding;
    return bytes >= kLeastSlab && std::has_single_bit(bytes) &&
                   graph_.blocks().start(block) % bytes == 0
               ? bytes
               : 0;
  }

  bool LeadsToSlab(uint32_t block, uint64_t offset) const {
    const auto edges = graph_.EdgesOf(block);
    return std::any_of(edges.begin(), edges.end(), [&](const HeapEdge& edge) {
      return edge.word == offset / kPointer && edge.how() == Pointer::kInterior &&
             SlabBytes(edge.to) != 0;
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
