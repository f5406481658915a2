// The heap graph against models that follow the words and nothing else: a node dominates what
// cannot be reached without it, a set of blocks retains what cannot be reached without them,
// a chain is a chain. Thousands of random graphs; and one as long as a heap is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "report/leak/graph_report.h"
#include "report/leak/leak_scans.h"
#include "tests/report/leak/leak_world.h"

namespace memtrace::report {
namespace {

using leak::GraphReport;
using leak::KeepPaths;

struct ListGraph {
  std::vector<std::vector<uint32_t>> to;
  uint32_t size() const { return static_cast<uint32_t>(to.size()); }
  uint64_t degree(uint32_t v) const { return to[v].size(); }
  uint32_t next(uint32_t v, uint64_t i) const { return to[v][i]; }
};

std::vector<bool> ReachedWithout(const ListGraph& graph, uint32_t without) {
  std::vector<bool> met(graph.size());
  std::vector<uint32_t> stack;
  if (without != 0) stack.push_back(0);
  while (!stack.empty()) {
    const uint32_t v = stack.back();
    stack.pop_back();
    if (v == without || met[v]) continue;
    met[v] = true;
    stack.insert(stack.end(), graph.to[v].begin(), graph.to[v].end());
  }
  return met;
}

TEST(DominatorTest, AreTheNodesWithoutWhichThereIsNoWay) {
  uint64_t deep = 0, unreached = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ListGraph graph;
    const uint32_t n = 1 + random() % 24;
    graph.to.resize(n);
    // Some are nearly trees, some dense.
    for (uint64_t edges = n * (1 + random() % 3); edges > 0; --edges) {
      graph.to[random() % n].push_back(static_cast<uint32_t>(random() % n));
    }
    const leak::DominatorTree tree = leak::FindDominators(graph);
    const std::vector<bool> all = ReachedWithout(graph, n);
    std::vector<std::vector<bool>> without;
    for (uint32_t v = 0; v < n; ++v) without.push_back(ReachedWithout(graph, v));
    const auto dominates = [&](uint32_t a, uint32_t b) { return a != b && all[b] && !without[a][b]; };
    ASSERT_EQ(tree.order.size(), static_cast<size_t>(std::count(all.begin(), all.end(), true)));
    std::set<uint32_t> before;
    for (const uint32_t v : tree.order) {
      ASSERT_TRUE(v == 0 || before.contains(tree.of[v]));
      before.insert(v);
    }
    for (uint32_t v = 0; v < n; ++v) {
      if (v == 0 || !all[v]) {
        ASSERT_EQ(tree.of[v], leak::kNoNode);
        unreached += v != 0;
        continue;
      }
      // Of all that dominate it, the one that the others dominate.
      for (uint32_t a = 0; a < n; ++a) {
        if (!dominates(a, v)) continue;
        ASSERT_TRUE(a == tree.of[v] || dominates(a, tree.of[v])) << v;
        deep += a != 0;
      }
      ASSERT_TRUE(dominates(tree.of[v], v)) << v;
    }
  }
  EXPECT_GT(deep, 4000u);
  EXPECT_GT(unreached, 4000u);
}

// A doubly linked list, at whose end all nodes are pointed to again from a table: the shape at which
// algorithms that are not near linear are caught, and recursion.
TEST(DominatorTest, TakesAListOfAMillion) {
  ListGraph graph;
  constexpr uint32_t kNodes = 1'000'000;
  graph.to.resize(kNodes + 1);
  for (uint32_t v = 0; v < kNodes; ++v) {
    graph.to[v].push_back(v + 1);
    if (v > 1) graph.to[v].push_back(v - 1);
  }
  for (uint32_t v = kNodes; v > kNodes / 2; --v) graph.to[kNodes].push_back(v);
  const leak::DominatorTree tree = leak::FindDominators(graph);
  for (uint32_t v = 1; v <= kNodes; ++v) ASSERT_EQ(tree.of[v], v - 1);
}

// --- Heaps --------------------------------------------------------------------

struct Held {
  World world;
  AnalyzedTrace trace;
  std::optional<leak::HeldScan> scan;

  void Analyze() {
    AnalyzeOptions options;
    options.leak_observer = leak::HoldScan(0, &scan);
    trace = report::Analyze(world.Bytes(), options);
  }
};

void MakeHeap(std::mt19937_64& random, World* world) {
  const auto below = [&](uint64_t n) { return random() % n; };
  const uint64_t count = 1 + below(16);
  std::vector<uint64_t> starts;
  uint64_t address = World::kHeap + 0x1000;
  for (uint64_t i = 0; i < count; ++i) {
    starts.push_back(address);
    world->Block(address, 64, 0x402000 + 16 * below(5));
    address += 96;
  }
  const auto word = [&] { return starts[below(count)] + (below(6) == 0 ? 8 : 0); };
  for (const uint64_t start : starts) {
    for (uint64_t at = 0; at < 64; at += 8) {
      if (below(100) < 16) world->In(start + at, word());
    }
  }
  for (uint64_t i = below(4) + below(3); i > 0; --i) world->Root(word());
  if (below(3) == 0) {
    world->scan.Thread(4242, 1, format::ScanThreadState::kParked, {word(), 0, word()});
  }
}

// Two words of the data are a variable, so that a root may have several.
leak::VariableAnswers InPairs(const ModuleInfo&, const std::vector<leak::VariableQuery>& asked) {
  leak::VariableAnswers answers;
  for (const leak::VariableQuery& query : asked) {
    const uint64_t start = query.offset & ~uint64_t{15};
    answers.variables.push_back({"v" + std::to_string(start), start});
  }
  return answers;
}

class Model {
 public:
  Model(const leak::HeldScan& held, const leak::RootGroups& roots) : held_(held), roots_(roots) {}

  bool IsLost(uint32_t block) const {
    return held_.marks.kind[block] == LeakKind::kDefinite ||
           held_.marks.kind[block] == LeakKind::kIndirect;
  }
  // Without these blocks and, unless it is kNone, without this root.
  std::set<uint32_t> Left(const std::set<uint32_t>& without, uint32_t root = UINT32_MAX) const {
    std::set<uint32_t> met;
    std::vector<uint32_t> stack;
    for (size_t i = 0; i < held_.graph.roots().size(); ++i) {
      if (roots_.GroupOf(i) != root) stack.push_back(held_.graph.roots()[i].to);
    }
    const auto flood = [&](bool lost) {
      while (!stack.empty()) {
        const uint32_t block = stack.back();
        stack.pop_back();
        if (without.contains(block) || IsLost(block) != lost || !met.insert(block).second) continue;
        for (const leak::HeapEdge& edge : held_.graph.EdgesOf(block)) stack.push_back(edge.to);
      }
    };
    flood(false);
    for (uint32_t i = 0; i < held_.graph.size(); ++i) {
      if (held_.marks.kind[i] == LeakKind::kDefinite) stack.push_back(i);
    }
    flood(true);
    return met;
  }
  uint64_t Retained(const std::set<uint32_t>& without, uint32_t root = UINT32_MAX) const {
    return 64 * (held_.graph.size() - Left(without, root).size());
  }
  // Pointers on the shortest way from a root over starts alone.
  size_t ShortestOfStarts(uint32_t block) const {
    std::set<uint32_t> met;
    for (const leak::RootEdge& root : held_.graph.roots()) {
      if (root.how != leak::Pointer::kInterior) met.insert(root.to);
    }
    for (size_t length = 1;; ++length) {
      if (met.contains(block)) return length;
      std::set<uint32_t> more = met;
      for (const uint32_t each : met) {
        for (const leak::HeapEdge& edge : held_.graph.EdgesOf(each)) {
          if (edge.how() != leak::Pointer::kInterior) more.insert(edge.to);
        }
      }
      if (more == met) return 0;
      met = more;
    }
  }

 private:
  const leak::HeldScan& held_;
  const leak::RootGroups& roots_;
};

void CheckChain(GraphReport& report, const Model& model, uint32_t block) {
  const std::vector<KeepPaths::Step> chain = report.paths().ChainOf(block);
  ASSERT_EQ(chain.back().block, block);
  const uint32_t root = report.paths().RootOf(block);
  const LeakKind kind = report.KindOf(block);
  ASSERT_EQ(root == KeepPaths::kNone, model.IsLost(block));
  bool interior = false;
  if (root != KeepPaths::kNone) {
    ASSERT_EQ(report.graph().roots()[root].to, chain.front().block);
    interior = report.graph().roots()[root].how == leak::Pointer::kInterior;
  } else {
    ASSERT_EQ(report.KindOf(chain.front().block), LeakKind::kDefinite);
    ASSERT_EQ(report.paths().LeaderOf(block), chain.front().block);
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    bool found = false;
    for (const leak::HeapEdge& edge : report.graph().EdgesOf(chain[i - 1].block)) {
      found |= edge.to == chain[i].block && edge.how() == chain[i].how &&
               report.graph().OffsetOf(chain[i - 1].block, edge) == chain[i].offset;
    }
    ASSERT_TRUE(found) << i;
    interior |= chain[i].how == leak::Pointer::kInterior;
  }
  if (kind == LeakKind::kReachable) {
    ASSERT_FALSE(interior);
    ASSERT_EQ(chain.size(), model.ShortestOfStarts(block));
  }
  if (kind == LeakKind::kPossible) {
    ASSERT_TRUE(interior);
  }
  if (kind == LeakKind::kDefinite) {
    ASSERT_EQ(chain.size(), 1u);
  }
}

TEST(HeapGraphTest, WhatIsRetainedIsWhatNoWayLeadsToWithoutIt) {
  uint64_t more_than_one_by_one = 0, at_least = 0, chains = 0, held_by = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Held held;
    MakeHeap(random, &held.world);
    held.world.trace.Module(1, format::kModulePermanent, World::kData, World::kData + 0x10000,
                            World::kData, "/usr/bin/app");
    held.Analyze();
    ASSERT_TRUE(held.scan.has_value());
    GraphReport report(held.trace.analysis, *held.scan, InPairs);
    const Model model(*held.scan, report.roots());
    const uint32_t n = report.graph().size();
    for (uint32_t block = 0; block < n; ++block) {
      ASSERT_EQ(report.retention().of[report.nodes().NodeOf(block)].bytes, model.Retained({block}));
      CheckChain(report, model, block);
      if (HasFatalFailure()) return;
      chains += report.paths().ChainOf(block).size() > 2;
    }
    const leak::HeapSummary summary = report.Summarize();
    ASSERT_EQ(summary.roots.size(), report.roots().size());
    uint64_t of_roots = 0;
    for (const leak::KeepingRoot& root : summary.roots) {
      ASSERT_EQ(root.retained.bytes, model.Retained({}, root.group));
      of_roots += root.retained.bytes;
    }
    ASSERT_EQ(summary.shared.bytes + summary.lost.bytes + of_roots, 64 * n);

    const auto rough = leak::FindRetainingSites(report.nodes(), report.retention(),
                                                held.scan->sites, /*most_steps=*/0);
    std::map<std::pair<uint32_t, format::AllocFunction>, leak::RetainingSite> roughly;
    for (const leak::RetainingSite& site : rough) {
      roughly[{site.site.stack.value, site.site.function}] = site;
    }
    uint64_t last = UINT64_MAX;
    for (const leak::KeptSite& kept : summary.sites) {
      const leak::RetainingSite& site = kept.site;
      std::set<uint32_t> blocks;
      for (uint32_t block = 0; block < n; ++block) {
        const leak::BlockSite& of = report.SiteOf(block);
        if (of.stack == site.site.stack && of.function == site.site.function) blocks.insert(block);
      }
      ASSERT_EQ(site.own.blocks, blocks.size());
      ASSERT_TRUE(site.exact);
      ASSERT_EQ(site.retained.bytes, model.Retained(blocks));
      ASSERT_LE(site.retained.bytes, last);
      last = site.retained.bytes;
      const leak::RetainingSite& bound = roughly[{site.site.stack.value, site.site.function}];
      ASSERT_LE(bound.retained.bytes, site.retained.bytes);
      if (bound.exact) {
        ASSERT_EQ(bound.retained.bytes, site.retained.bytes);
      }
      at_least += !bound.exact;
      more_than_one_by_one += bound.retained.bytes < site.retained.bytes;

      const leak::WhyAnswer why = report.Why({blocks.begin(), blocks.end()});
      ASSERT_EQ(why.retained.bytes, site.retained.bytes);
      uint64_t sum = 0;
      for (const leak::WhyAnswer::Keeper& keeper : why.keepers) sum += keeper.kept.bytes;
      ASSERT_EQ(sum, site.own.bytes);
      // A holder is what all of them go with.
      const std::vector<uint32_t> held_by_nodes =
          leak::CommonDominators(report.nodes(), report.retention().tree, why.blocks, 1000);
      ASSERT_EQ(why.held_by.size(), std::min<size_t>(held_by_nodes.size(), 8));
      const std::set<uint32_t> holders(held_by_nodes.begin(), held_by_nodes.end());
      for (uint32_t node = 1; node < report.nodes().size(); ++node) {
        const bool is_block = report.nodes().IsBlock(node);
        if (is_block && blocks.contains(report.nodes().BlockOf(node))) continue;
        const std::set<uint32_t> left =
            is_block ? model.Left({report.nodes().BlockOf(node)}) : model.Left({}, node - 1);
        const bool holds = std::none_of(blocks.begin(), blocks.end(),
                                        [&](uint32_t block) { return left.contains(block); });
        ASSERT_EQ(holders.contains(node), holds) << node;
        held_by += holds;
      }
    }
  }
  EXPECT_GT(more_than_one_by_one, 300u) << "the heaps are not varied";
  EXPECT_GT(at_least, 1000u);
  EXPECT_GT(chains, 1000u);
  EXPECT_GT(held_by, 1000u);
}

// Roots by their place: of threads, modules, mappings.
TEST(HeapGraphTest, RootsHaveTheNamesOfTheirPlaces) {
  constexpr uint64_t kThread = 0x7f0000010000, kBlock = World::kHeap + 0x1000;
  Held held;
  World& world = held.world;
  world.Block(kBlock, 64);
  TraceBuilder& trace = world.trace;
  trace.Module(1, format::kModulePermanent, World::kData, World::kData + 0x8000, World::kData - 0x1000,
               "/usr/bin/app");
  trace.Record([&](format::RecordEncoder& record) {
    record.Begin(format::RecordTag::kModule);
    for (const uint64_t number : {uint64_t{2}, uint64_t{format::kModulePermanent}, uint64_t{0x700000},
                                  uint64_t{0x701000}, uint64_t{0x700000}}) {
      record.Number(number);
    }
    record.Bytes("/usr/lib/with_tls.so");
    record.Bytes("");
    record.Number(0);
    record.Bytes("");
    record.Number(64);  // below the thread pointer
    record.Number(48);
    record.End();
  });
  using format::ScanRegionKind;
  const uint32_t stack = world.scan.Region(ScanRegionKind::kStack, format::ScanRegionUse::kRoot,
                                           0x7ffc0000, 0x7ffc1000, "[stack]", 1);
  const uint32_t other = world.scan.Region(ScanRegionKind::kAnonymous, format::ScanRegionUse::kRoot,
                                           kThread - 0x1000, kThread + 0x2000);
  world.scan.Raw(2, {4242, 1, 2, 0x7ffc0100, 0x7ffc0000, 0x7ffc1000, 0, 0, 0, kThread});
  world.scan.Word(1, World::kData + 0x28, kBlock);   // a variable
  world.scan.Word(1, World::kData + 0x9000, kBlock);  // behind the module
  world.scan.Word(stack, 0x7ffc0140, kBlock);
  world.scan.Word(other, kThread - 24, kBlock);        // 40 into the module's thread-local 48
  world.scan.Word(other, kThread - 16, kBlock);        // behind them
  world.scan.Word(other, kThread + 0x310, kBlock);
  world.scan.Word(other, kThread + 0x1000, kBlock);
  held.Analyze();
  ASSERT_TRUE(held.scan.has_value());
  std::vector<std::string> asked;
  const auto find = [&](const ModuleInfo& module, const std::vector<leak::VariableQuery>& queries) {
    // What might have no name is told only where something has none.
    leak::VariableAnswers answers{{}, module.path + ": why"};
    for (const leak::VariableQuery& query : queries) {
      asked.push_back(module.path + (query.thread_local_ ? " local " : " ") + std::to_string(query.offset));
      answers.variables.push_back(query.thread_local_ ? leak::Variable{"", 0} : leak::Variable{"global", 0x1020});
    }
    return answers;
  };
  // It lay there later, and only a memory map tells of it.
  ModuleInfo later;
  later.path = "/usr/lib/later.so";
  later.start = World::kData;
  later.end = World::kData + 0x1000;
  held.trace.analysis.modules.push_back(later);
  const leak::RootGroups roots(held.trace.analysis, held.scan->scan, held.scan->graph,
                               held.scan->time_ns, find);
  EXPECT_THAT(asked, testing::UnorderedElementsAre("/usr/bin/app 4136", "/usr/lib/with_tls.so local 40"));
  EXPECT_THAT(roots.unnamed(), testing::ElementsAre("/usr/lib/with_tls.so: why"));
  std::vector<std::pair<leak::RootGroup::Kind, int64_t>> found;
  for (size_t i = 0; i < held.scan->graph.roots().size(); ++i) {
    const leak::RootPlace place = roots.PlaceOf(i);
    found.emplace_back(roots.group(place.group).kind, place.offset);
  }
  using Kind = leak::RootGroup::Kind;
  EXPECT_THAT(found, testing::ElementsAre(
                         testing::Pair(Kind::kVariable, 8), testing::Pair(Kind::kMapping, 0x9000),
                         testing::Pair(Kind::kStack, 0x40), testing::Pair(Kind::kThreadLocal, 40),
                         testing::Pair(Kind::kMapping, 0x1000 - 16),
                         testing::Pair(Kind::kDescriptor, 0x310),
                         testing::Pair(Kind::kMapping, 0x2000)));
}

TEST(HeapGraphTest, TheScanThatIsHeldIsTheOneThatReportsAreAbout) {
  // Of several: a number, or the last, though it is of an exit handler.
  World world;
  world.Block(World::kHeap + 0x1000, 64);
  TraceBuilder& trace = world.trace;
  const auto add = [&](uint32_t number, format::ScanReason reason) {
    ScanBuilder scan(number, trace.TicksAt(World::kScanNs + number), reason);
    scan.Region(format::ScanRegionKind::kModuleData, format::ScanRegionUse::kRoot, World::kData,
                World::kData + 0x1000, "/usr/bin/app");
    scan.Done().AddTo(&trace);
  };
  add(2, format::ScanReason::kExitEarly);
  add(3, format::ScanReason::kRequest);
  const std::string bytes = world.Bytes();  // with scan 1, at an exit and before these
  for (const auto& [wanted, expected] : std::map<uint32_t, uint32_t>{{0, 3}, {1, 1}, {2, 2}}) {
    std::optional<leak::HeldScan> held;
    AnalyzeOptions options;
    options.leak_observer = leak::HoldScan(wanted, &held);
    const AnalyzedTrace analyzed = Analyze(bytes, options);
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(held->scan.number, expected);
    EXPECT_EQ(leak::ChooseScan(analyzed.analysis, wanted)->number, expected);
  }
}

}  // namespace
}  // namespace memtrace::report
