#include "report/leak/keep_paths.h"

#include <algorithm>
#include <numeric>

namespace memtrace::report::leak {

std::vector<uint32_t> FinalLeaders(const Marks& marks) {
  std::vector<uint32_t> leader(marks.kind.size(), kNoBlock), way;
  for (uint32_t block = 0; block < leader.size(); ++block) {
    if (!IsLost(marks.kind[block])) continue;
    uint32_t at = block;
    way.clear();
    while (leader[at] == kNoBlock && marks.leader[at] != kNoBlock) {
      way.push_back(at);
      at = marks.leader[at];
    }
    const uint32_t last = leader[at] != kNoBlock ? leader[at] : at;
    leader[at] = last;
    for (const uint32_t each : way) leader[each] = last;
  }
  return leader;
}

KeepPaths::KeepPaths(const HeapGraph& graph, const Marks& marks, const RootGroups& roots)
    : graph_(graph), roots_(graph.roots().size()), from_(graph.size(), kNone),
      begin_(graph.size(), kNone), is_lost_(graph.size()) {
  for (uint32_t i = 0; i < graph.size(); ++i) is_lost_[i] = IsLost(marks.kind[i]);
  std::iota(roots_.begin(), roots_.end(), 0);
  std::stable_sort(roots_.begin(), roots_.end(), [&](uint32_t a, uint32_t b) {
    return roots.group(roots.GroupOf(a)).kind < roots.group(roots.GroupOf(b)).kind;
  });
  order_.reserve(graph.size());
  FollowStarts();
  FollowRest();
  FollowLost(marks);
}

void KeepPaths::FollowStarts() {
  for (const uint32_t i : roots_) {
    const RootEdge& root = graph_.roots()[i];
    if (root.how != Pointer::kInterior) Enter(root.to, kNone, i);
  }
  for (size_t next = 0; next < order_.size(); ++next) {
    const uint32_t block = order_[next];
    for (const HeapEdge& edge : graph_.EdgesOf(block)) {
      if (edge.how() != Pointer::kInterior) Enter(edge.to, block, begin_[block]);
    }
  }
}

void KeepPaths::FollowRest() {
  for (const uint32_t i : roots_) Enter(graph_.roots()[i].to, kNone, i);
  for (size_t next = 0; next < order_.size(); ++next) {
    const uint32_t block = order_[next];
    for (const HeapEdge& edge : graph_.EdgesOf(block)) Enter(edge.to, block, begin_[block]);
  }
}

void KeepPaths::FollowLost(const Marks& marks) {
  const std::vector<uint32_t> leader = FinalLeaders(marks);
  const size_t first = order_.size();
  for (uint32_t block = 0; block < graph_.size(); ++block) {
    if (is_lost_[block] && leader[block] == block) Enter(block, kNone, block);
  }
  for (size_t next = first; next < order_.size(); ++next) {
    const uint32_t block = order_[next];
    for (const HeapEdge& edge : graph_.EdgesOf(block)) {
      if (leader[edge.to] == begin_[block]) Enter(edge.to, block, begin_[block]);
    }
  }
}

std::vector<KeepPaths::Step> KeepPaths::ChainOf(uint32_t block) const {
  std::vector<Step> chain;
  for (uint32_t at = block;; at = from_[at]) {
    Step& step = chain.emplace_back();
    step.block = at;
    const uint32_t from = from_[at];
    if (from == kNone) {
      if (!is_lost_[at]) step.how = graph_.roots()[begin_[at]].how;
      break;
    }
    // A pointer to its start before one into it, as it was found.
    const HeapEdge* found = nullptr;
    for (const HeapEdge& edge : graph_.EdgesOf(from)) {
      if (edge.to != at) continue;
      if (found == nullptr ||
          (found->how() == Pointer::kInterior && edge.how() != Pointer::kInterior)) {
        found = &edge;
      }
    }
    step.how = found->how();
    step.offset = graph_.OffsetOf(from, *found);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace memtrace::report::leak
