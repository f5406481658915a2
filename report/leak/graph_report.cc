#include "report/leak/graph_report.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "report/findings/analysis.h"

namespace memtrace::report::leak {
namespace {

constexpr size_t kMostHeldBy = 8;

void Add(uint64_t bytes, LeakAmount* amount) {
  amount->bytes += bytes;
  ++amount->blocks;
}

}  // namespace

GraphReport::GraphReport(const Analysis& analysis, const HeldScan& held,
                         const VariableFinder& find)
    : held_(held), roots_(analysis, held.scan, held.graph, held.time_ns, find) {}

const KeepPaths& GraphReport::paths() {
  if (!paths_.has_value()) paths_.emplace(held_.graph, held_.marks, roots_);
  return *paths_;
}

const RetentionGraph& GraphReport::nodes() {
  if (!nodes_.has_value()) nodes_.emplace(held_.graph, held_.marks, roots_);
  return *nodes_;
}

const Retention& GraphReport::retention() {
  if (!retention_.has_value()) retention_.emplace(FindRetention(nodes()));
  return *retention_;
}

HeapSummary GraphReport::Summarize() {
  HeapSummary summary;
  summary.blocks = graph().size();
  summary.pointers = graph().edge_count();
  summary.root_words = graph().roots().size();

  LeakAmount kept;
  for (uint32_t i = 0; i < roots_.size(); ++i) {
    summary.roots.push_back({i, 0, retention().of[nodes().NodeOfGroup(i)]});
    kept.bytes += summary.roots.back().retained.bytes;
    kept.blocks += summary.roots.back().retained.blocks;
  }
  for (size_t i = 0; i < graph().roots().size(); ++i) ++summary.roots[roots_.GroupOf(i)].words;
  std::sort(summary.roots.begin(), summary.roots.end(),
            [](const KeepingRoot& a, const KeepingRoot& b) {
              return std::tuple(b.retained.bytes, b.retained.blocks, a.group) <
                     std::tuple(a.retained.bytes, a.retained.blocks, b.group);
            });

  // By site and root: the bytes whose chains begin there.
  absl::flat_hash_map<std::tuple<uint32_t, format::AllocFunction, uint32_t>, uint64_t> bytes;
  absl::flat_hash_map<std::pair<uint32_t, format::AllocFunction>,
                      std::pair<uint64_t, uint32_t>> most;  // bytes, group
  for (uint32_t block = 0; block < graph().size(); ++block) {
    const uint64_t size = graph().blocks().bytes(block);
    const uint32_t root = paths().RootOf(block);
    const uint32_t group = root == KeepPaths::kNone ? KeepPaths::kNone : roots_.GroupOf(root);
    Add(size, group == KeepPaths::kNone ? &summary.lost : &summary.shared);
    const BlockSite& site = SiteOf(block);
    const uint64_t sum = bytes[{site.stack.value, site.function, group}] += size;
    auto& best = most.try_emplace({site.stack.value, site.function}, 0, group).first->second;
    if (sum > best.first) best = {sum, group};
  }
  summary.shared.bytes -= std::min(summary.shared.bytes, kept.bytes);
  summary.shared.blocks -= std::min(summary.shared.blocks, kept.blocks);
  for (const RetainingSite& site : FindRetainingSites(nodes(), retention(), held_.sites)) {
    const auto [sum, group] = most.at({site.site.stack.value, site.site.function});
    summary.sites.push_back({site, group, sum});
  }
  return summary;
}

WhyAnswer GraphReport::Why(std::vector<uint32_t> blocks) {
  WhyAnswer answer;
  std::vector<bool> is_one(graph().size());
  for (const uint32_t block : blocks) {
    is_one[block] = true;
    Add(graph().blocks().bytes(block), &answer.kinds[static_cast<size_t>(KindOf(block))]);
  }
  answer.retained = RetainedWithout(nodes(), [&](uint32_t block) { return is_one[block]; });
  answer.held_by = CommonDominators(nodes(), retention().tree, blocks, kMostHeldBy);

  absl::flat_hash_map<std::pair<uint32_t, LeakKind>, size_t> known;
  for (const uint32_t block : paths().order()) {  // so the first of each has a shortest chain
    if (!is_one[block]) continue;
    const uint32_t root = paths().RootOf(block);
    const uint32_t group = root == KeepPaths::kNone ? KeepPaths::kNone : roots_.GroupOf(root);
    const auto [at, is_new] = known.try_emplace({group, KindOf(block)}, answer.keepers.size());
    if (is_new) answer.keepers.push_back({group, KindOf(block), {}, block});
    Add(graph().blocks().bytes(block), &answer.keepers[at->second].kept);
  }
  std::stable_sort(answer.keepers.begin(), answer.keepers.end(),
                   [](const WhyAnswer::Keeper& a, const WhyAnswer::Keeper& b) {
                     return a.kept.bytes > b.kept.bytes;
                   });
  answer.blocks = std::move(blocks);
  return answer;
}

PointersAnswer GraphReport::WhoPointsAt(uint64_t address) const {
  PointersAnswer answer;
  answer.address = address;
  answer.block = graph().blocks().Find(address);
  if (answer.block == kNoBlock) return answer;
  for (uint32_t block = 0; block < graph().size(); ++block) {
    for (const HeapEdge& edge : graph().EdgesOf(block)) {
      if (edge.to != answer.block) continue;
      answer.blocks.push_back({block, graph().OffsetOf(block, edge), edge.how()});
    }
  }
  for (uint32_t i = 0; i < graph().roots().size(); ++i) {
    if (graph().roots()[i].to == answer.block) answer.roots.push_back(i);
  }
  return answer;
}

}  // namespace memtrace::report::leak
