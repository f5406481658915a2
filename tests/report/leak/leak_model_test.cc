// The classes against a model that follows the rules' English and nothing else: plain
// reachability for what is not lost, and what hangs on whom for what is.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/report/leak/leak_world.h"

namespace memtrace::report {
namespace {

struct ModelBlock {
  uint64_t start, size;
  std::vector<std::pair<uint64_t, uint64_t>> words;  // address, value
};

struct ModelWorld {
  std::vector<ModelBlock> blocks;  // by address
  std::vector<uint64_t> roots;
  std::map<uint64_t, uint64_t> in_front;  // the word in front of an address

  // "A word points at a block if start <= word < start + size; size 0 counts as 1."
  int Target(uint64_t word) const {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const uint64_t size = blocks[i].size == 0 ? 1 : blocks[i].size;
      if (word >= blocks[i].start && word < blocks[i].start + size) return static_cast<int>(i);
    }
    return -1;
  }
  // "... at its start, or in a way that a heuristic takes for one": only two of them here.
  bool AsGoodAsStart(uint64_t word, int block) const {
    const ModelBlock& b = blocks[static_cast<size_t>(block)];
    if (word == b.start) return true;
    if (word != b.start + 8) return false;
    const auto count = in_front.find(word);
    return count != in_front.end() && count->second > 0 && (b.size - 8) % count->second == 0;
  }

  // All that chains lead to, over start pointers alone or over any.
  std::set<int> Chains(bool starts_alone) const {
    std::set<int> met;
    std::vector<uint64_t> words = roots;
    while (!words.empty()) {
      const uint64_t word = words.back();
      words.pop_back();
      const int to = Target(word);
      if (to < 0 || (starts_alone && !AsGoodAsStart(word, to)) || !met.insert(to).second) continue;
      for (const auto& [address, value] : blocks[static_cast<size_t>(to)].words) {
        words.push_back(value);
      }
    }
    return met;
  }

  std::vector<LeakKind> Kinds(std::vector<LeakAmount>* indirect) const {
    std::vector<LeakKind> kinds(blocks.size(), LeakKind::kDefinite);
    for (const int i : Chains(false)) kinds[static_cast<size_t>(i)] = LeakKind::kPossible;
    for (const int i : Chains(true)) kinds[static_cast<size_t>(i)] = LeakKind::kReachable;
    // "Then in ascending address order: whatever lost block an undecided one leads to, over
    // undecided blocks, hangs on it; also one that others hang on, with them."
    std::map<size_t, size_t> hangs_on;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (kinds[i] == LeakKind::kDefinite) Hang(i, i, &kinds, &hangs_on);
    }
    indirect->assign(blocks.size(), {});
    for (const auto& [block, first] : hangs_on) {
      size_t leader = first;
      while (hangs_on.contains(leader)) leader = hangs_on.at(leader);
      (*indirect)[leader].bytes += blocks[block].size;
      ++(*indirect)[leader].blocks;
    }
    return kinds;
  }

  void Hang(size_t block, size_t leader, std::vector<LeakKind>* kinds,
            std::map<size_t, size_t>* hangs_on) const {
    for (const auto& [address, value] : blocks[block].words) {
      const int target = Target(value);
      const auto to = static_cast<size_t>(target);
      if (target < 0 || to == leader || (*kinds)[to] != LeakKind::kDefinite) continue;
      (*kinds)[to] = LeakKind::kIndirect;
      (*hangs_on)[to] = leader;
      Hang(to, leader, kinds, hangs_on);
    }
  }
};

ModelWorld RandomWorld(std::mt19937_64& random, World* world) {
  const auto below = [&](uint64_t n) { return random() % n; };
  ModelWorld model;
  const uint64_t count = 1 + below(14);
  uint64_t address = World::kHeap + 0x1000 + 16 * below(400);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t size = below(8) == 0 ? 0 : 1 + below(80);
    model.blocks.push_back({address, size, {}});
    address += (size + 16 + 15) / 16 * 16 + 16 * below(3) + (below(10) == 0 ? 0x1000 : 0);
  }
  const auto word = [&]() -> uint64_t {
    const ModelBlock& to = model.blocks[below(count)];
    switch (below(6)) {
      case 0: return to.start + to.size;       // behind it
      case 1: return to.start + below(to.size + 1);
      case 2: return to.start + 8;
      case 3: return below(2) == 0 ? to.start - 8 : 0x600010;
      default: return to.start;
    }
  };
  for (ModelBlock& block : model.blocks) {
    for (uint64_t at = (block.start + 7) / 8 * 8; at + 8 <= block.start + block.size; at += 8) {
      if (below(10) < 3) block.words.emplace_back(at, word());
    }
    if (below(4) == 0) {
      const uint64_t cookie = 1 + below(12);
      model.in_front[block.start + 8] = cookie;
    }
  }
  for (uint64_t i = below(4); i > 0; --i) model.roots.push_back(word());

  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const size_t i : order) {
    world->Block(model.blocks[i].start, static_cast<uint32_t>(model.blocks[i].size),
                 0x402000 + 16 * below(3));
  }
  std::shuffle(order.begin(), order.end(), random);  // regions may come in any order
  for (const size_t i : order) {
    for (const auto& [at, value] : model.blocks[i].words) world->In(at, value);
  }
  for (const uint64_t value : model.roots) world->Root(value);
  for (const auto& [at, value] : model.in_front) world->scan.Target(at, value);
  // Stale pointers in free memory, which count for nothing.
  for (int i = 0; i < 3; ++i) world->In(World::kHeap + 0x100 + 8 * below(100), word());
  return model;
}

void CheckWorlds(uint64_t seeds, uint64_t first) {
  uint64_t seen[4] = {}, several = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    World world;
    ModelWorld model = RandomWorld(random, &world);
    leak::LeakOptions options;
    options.heuristics = *leak::ParseHeuristics("newarray");
    const LeakScan& scan = world.Check(options);
    std::vector<LeakAmount> indirect;
    const std::vector<LeakKind> kinds = model.Kinds(&indirect);
    ASSERT_EQ(world.found.size(), kinds.size());
    LeakAmount totals[4] = {};
    for (size_t i = 0; i < kinds.size(); ++i) {
      const World::Found& found = world.found[i];
      ASSERT_EQ(found.address, model.blocks[i].start);
      ASSERT_EQ(found.kind, kinds[i]) << i;
      ++seen[static_cast<size_t>(kinds[i])];
      LeakAmount& total = totals[static_cast<size_t>(kinds[i])];
      total.bytes += model.blocks[i].size;
      ++total.blocks;
      ASSERT_EQ(found.indirect.bytes, indirect[i].bytes) << i;
      ASSERT_EQ(found.indirect.blocks, indirect[i].blocks) << i;
      several += indirect[i].blocks > 1;
    }
    for (size_t kind = 0; kind < 4; ++kind) {
      ASSERT_EQ(scan.totals[kind].bytes, totals[kind].bytes);
      ASSERT_EQ(scan.totals[kind].blocks, totals[kind].blocks);
    }
    LeakAmount of_records[4] = {}, of_leaders;
    for (const LossRecord& record : scan.records) {
      of_records[static_cast<size_t>(record.kind)].bytes += record.bytes;
      of_leaders.bytes += record.indirect_bytes;
    }
    for (size_t kind = 0; kind < 4; ++kind) ASSERT_EQ(of_records[kind].bytes, totals[kind].bytes);
    ASSERT_EQ(of_leaders.bytes, totals[1].bytes);
  }
  for (const uint64_t kind : seen) EXPECT_GT(kind, seeds / 10) << "the worlds are not varied";
  EXPECT_GT(several, seeds / 20);
}

TEST(LeakModelTest, TheClassesAreTheModelsInRandomWorlds) { CheckWorlds(4000, 1); }

TEST(LeakModelTest, DISABLED_InVeryMany) { CheckWorlds(400'000, 1'000'000); }

}  // namespace
}  // namespace memtrace::report
