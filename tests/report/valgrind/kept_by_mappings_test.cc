// Losses that hang on memory that the program mapped are told from those that hang on the rest.

#include "report/valgrind/kept_by_mappings.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/report/leak/leak_world.h"

namespace memtrace::report::valgrind {
namespace {

class KeptByMappingsTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlock = World::kHeap + 0x1010, kBehind = World::kHeap + 0x2010;
  static constexpr uint64_t kPages = 0x7f0000000000;

  // A root of that kind leads to a block, and that to another one.
  void KeepFrom(format::ScanRegionKind kind, const std::string& path = "") {
    world_.Block(kBlock, 64).Block(kBehind, 64).In(kBlock, kBehind);
    const uint32_t region =
        world_.scan.Region(kind, format::ScanRegionUse::kRoot, kPages, kPages + 0x1000, path);
    world_.scan.Word(region, kPages + 0x40, kBlock);
  }
  // A loss of each record, marked.
  render::LossList Marked() {
    AnalyzeOptions options;
    options.leak_observer = leak::HoldScan(/*number=*/0, &held_);
    trace_ = Analyze(world_.Bytes(), options);
    render::LossList losses;
    losses.scan = &trace_.analysis.leak_scans.at(0);
    for (const LossRecord& record : losses.scan->records) {
      render::Loss loss;
      loss.kind = record.kind;
      loss.site_stack = record.stack;
      loss.allocator = record.function;
      losses.losses.push_back(loss);
    }
    MarkKeptByMappings(trace_.analysis, *held_, &losses);
    return losses;
  }

  World world_;
  std::optional<leak::HeldScan> held_;
  AnalyzedTrace trace_;
};

TEST_F(KeptByMappingsTest, ACollectorsPagesKeepWhatTheyLeadTo) {
  KeepFrom(format::ScanRegionKind::kAnonymous);
  const render::LossList losses = Marked();
  ASSERT_EQ(losses.losses.size(), 2u);
  for (const render::Loss& loss : losses.losses) {
    EXPECT_EQ(loss.kind, LeakKind::kReachable);
    EXPECT_TRUE(loss.kept_by_mapping);
  }
}

TEST_F(KeptByMappingsTest, AStackOrAModulesDataIsNoMappingOfTheProgram) {
  KeepFrom(format::ScanRegionKind::kStack, "[stack]");
  world_.Block(World::kHeap + 0x3010, 64).Root(World::kHeap + 0x3010);
  const render::LossList losses = Marked();
  ASSERT_EQ(losses.losses.size(), 3u);
  for (const render::Loss& loss : losses.losses) {
    EXPECT_EQ(loss.kind, LeakKind::kReachable);
    EXPECT_FALSE(loss.kept_by_mapping);
  }
}

TEST_F(KeptByMappingsTest, OfALostBlockNothingIsSaid) {
  world_.Block(kBlock, 64);
  const render::LossList losses = Marked();
  ASSERT_EQ(losses.losses.size(), 1u);
  EXPECT_EQ(losses.losses[0].kind, LeakKind::kDefinite);
  EXPECT_FALSE(losses.losses[0].kept_by_mapping);
}

}  // namespace
}  // namespace memtrace::report::valgrind
