#include "report/trace/stack_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "report/model/stream_state.h"

namespace memtrace::report {
namespace {

TEST(StackTableTest, TheSameWayIsTheSameStack) {
  StackTable stacks;
  const StackId main = stacks.Intern({}, 0x401000, 0);
  const StackId f = stacks.Intern(main, 0x402000, 0);
  EXPECT_NE(main, f);
  EXPECT_EQ(stacks.Intern(main, 0x402000, 0), f);
  EXPECT_NE(stacks.Intern({}, 0x402000, 0), f) << "another caller";
  EXPECT_NE(stacks.Intern(main, 0x402000, 3), f) << "another module at the same address";
  EXPECT_EQ(stacks.node(f).parent, main);
  EXPECT_EQ(stacks.size(), 4u);
}

TEST(StackTableTest, AgreesWithAMap) {
  StackTable stacks;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, StackId> model;
  std::mt19937 random(7);
  for (int i = 0; i < 50'000; ++i) {
    const StackId parent{static_cast<uint32_t>(random() % (stacks.size() + 1))};
    const uint64_t pc = random() % 500;
    const uint32_t instance = random() % 3;
    const StackId id = stacks.Intern(parent, pc, instance);
    const auto [at, added] = model.try_emplace({parent.value, pc, instance}, id);
    EXPECT_EQ(at->second, id);
    EXPECT_EQ(stacks.size(), model.size());
  }
}

TEST(StackTableTest, KnowsWhyAStackEnds) {
  StackTable stacks;
  EXPECT_EQ(stacks.MarkerOf({}), format::StackMarker::kNotCaptured);
  const StackId complete = stacks.Intern({}, 0x401000, 0);
  EXPECT_EQ(stacks.MarkerOf(complete), format::StackMarker::kNone);
  const StackId marker = stacks.Intern(
      {}, static_cast<uint64_t>(format::StackMarker::kNoUnwindInfo), format::kNoModule);
  const StackId above = stacks.Intern(stacks.Intern(marker, 0x1, 0), 0x2, 0);
  EXPECT_TRUE(stacks.node(marker).is_marker());
  EXPECT_EQ(stacks.MarkerOf(above), format::StackMarker::kNoUnwindInfo);
}

TEST(StackTableTest, AStackDeeperThanTheLimitIsCutAndSaysSo) {
  StackTable stacks;
  StackId id;
  for (size_t i = 0; i < StackTable::kMaxDepth; ++i) id = stacks.Intern(id, 0x1000 + i, 0);
  EXPECT_EQ(stacks.MarkerOf(id), format::StackMarker::kNone);
  const StackId deeper = stacks.Intern(id, 0x999, 0);
  EXPECT_EQ(stacks.MarkerOf(deeper), format::StackMarker::kTruncated);
  EXPECT_TRUE(stacks.node(stacks.node(deeper).parent).is_marker());
  EXPECT_EQ(stacks.Intern(id, 0x999, 0), deeper) << "interned like any other";
}

TEST(StackTableTest, PermanentModulesAreFoundByAddress) {
  std::vector<ModuleInfo> modules(2);
  modules[0].id = ModuleId{1};
  modules[0].flags = format::kModulePermanent;
  modules[0].start = 0x1000;
  modules[0].end = 0x2000;
  modules[1].id = ModuleId{2};
  modules[1].start = 0x2000;
  modules[1].end = 0x3000;
  const ModuleIndex index(modules);
  EXPECT_EQ(index.Find(StackNode{0x1800, {}, 0}), &modules[0]);
  EXPECT_EQ(index.Find(StackNode{0x2000, {}, 0}), &modules[0])
      << "the return address of a call that is the module's last instruction";
  EXPECT_EQ(index.Find(StackNode{0x2800, {}, 0}), nullptr) << "not a permanent one";
  EXPECT_EQ(index.Find(StackNode{0x2800, {}, 2}), &modules[1]);
  EXPECT_EQ(index.Find(StackNode{1, {}, format::kNoModule}), nullptr);
}

TEST(SlotMapTest, ADefinitionHoldsUntilTheNext) {
  SlotMap slots;
  EXPECT_FALSE(slots.Get(format::kMaxSlot));
  slots.Set(5, StackId{1});
  slots.Set(format::kMaxSlot, StackId{2});
  slots.Set(5, StackId{3});
  EXPECT_EQ(slots.Get(5), StackId{3});
  EXPECT_EQ(slots.Get(format::kMaxSlot), StackId{2});
  EXPECT_FALSE(slots.Get(6));
  slots.Clear();
  EXPECT_FALSE(slots.Get(5));
}

TEST(StreamStateTest, AParentIsLookedUpBeforeItsSlotIsDefinedAnew) {
  StackTable stacks;
  StreamState state;
  const auto define = [&](uint32_t slot, uint32_t parent, uint64_t pc) {
    const uint64_t words[] = {format::PathHead(parent, slot, 1), format::NodeWord(pc, 0)};
    state.Define(words, &stacks);
  };
  define(1, 0, 0x1000);
  const StackId old = state.StackOf(1, &stacks);
  define(1, 1, 0x2000);  // its own old meaning calls it
  EXPECT_EQ(stacks.node(state.StackOf(1, &stacks)).parent, old);
  EXPECT_EQ(stacks.node(old).pc, 0x1000u);
}

TEST(StreamStateTest, APathDefinesEachNodeUnderTheOneBefore) {
  StackTable stacks;
  StreamState state;
  const uint64_t outer[] = {format::PathHead(0, 7, 2), format::NodeWord(0x1000, 0),
                            format::NodeWord(0x2000, 3)};
  state.Define(outer, &stacks);
  // The parent's slot is among those defined.
  const uint64_t inner[] = {format::PathHead(8, 7, 2), format::NodeWord(0x3000, 0),
                            format::NodeWord(0x4000, 0)};
  state.Define(inner, &stacks);
  std::vector<uint64_t> pcs;
  for (StackId id = state.StackOf(8, &stacks); id; id = stacks.node(id).parent) {
    pcs.push_back(stacks.node(id).pc);
  }
  EXPECT_THAT(pcs, testing::ElementsAre(0x4000, 0x3000, 0x2000, 0x1000));
}

TEST(StreamStateTest, SlotsBeyondTheHighestAreLeftOut) {
  StackTable stacks;
  StreamState state;
  const uint64_t words[] = {format::PathHead(0, format::kMaxSlot, 2),
                            format::NodeWord(0x1000, 0), format::NodeWord(0x2000, 0)};
  state.Define(words, &stacks);
  EXPECT_EQ(stacks.node(state.StackOf(format::kMaxSlot, &stacks)).pc, 0x1000u);
  EXPECT_EQ(stacks.size(), 1u);
}

TEST(StreamStateTest, ASlotNobodyDefinedIsLostAndNotGuessed) {
  StackTable stacks;
  StreamState state;
  EXPECT_EQ(stacks.MarkerOf(state.StackOf(77, &stacks)), format::StackMarker::kLost);
  EXPECT_EQ(stacks.MarkerOf(state.StackOf(UINT32_MAX, &stacks)), format::StackMarker::kLost);
  EXPECT_EQ(state.StackOf(0, &stacks), StackId{});
}

}  // namespace
}  // namespace memtrace::report
