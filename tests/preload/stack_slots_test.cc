#include "preload/stack_slots.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

#include "preload/event_ring.h"
#include "report/model/stream_state.h"
#include "report/trace/event_cursor.h"

namespace memtrace {
namespace {

// The reader's side: a slot means the node that was defined under it last.
class Reader {
 public:
  void Define(uint64_t first, uint32_t nodes) {
    for (uint32_t i = 0; i < nodes; ++i) slots_[StackSlots::SlotOf(first) + i] = first + i;
  }
  uint64_t NodeOf(uint32_t slot) { return slots_[slot]; }

 private:
  std::unordered_map<uint32_t, uint64_t> slots_;
};

// What a reader takes for granted behind a hole.
TEST(StackSlotsTest, AreAsManyAsReadersKnow) {
  EXPECT_EQ(StackSlots::kSlots, report::StreamState::kSlotsInTurn);
  EXPECT_LE(EventRing::kBytes / sizeof(uint64_t), report::EventCursor::kMostBlockWords);
}

TEST(StackSlotsTest, NothingIsHeldBeforeItIsDefined) {
  StackSlots slots;
  EXPECT_FALSE(slots.Holds(0));
  EXPECT_FALSE(slots.Holds(1));
  const uint64_t first = slots.Define(2);
  EXPECT_TRUE(slots.Holds(first));
  EXPECT_TRUE(slots.Holds(first + 1));
  EXPECT_FALSE(slots.Holds(first + 2));
  EXPECT_EQ(slots.defined(), 2u);
}

TEST(StackSlotsTest, WhatIsHeldIsWhatTheReaderKnows) {
  StackSlots slots;
  Reader reader;
  std::mt19937 random(3);
  std::vector<uint64_t> kept;  // nodes from all of the past
  size_t held = 0, gone = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto nodes = static_cast<uint32_t>(1 + random() % 200);
    const uint64_t first = slots.Define(nodes);
    reader.Define(first, nodes);
    ASSERT_LE(StackSlots::SlotOf(first) + nodes - 1, StackSlots::kSlots);
    ASSERT_NE(StackSlots::SlotOf(first), format::kNoSlot);
    if (round % 16 == 0) kept.push_back(first + random() % nodes);
    const uint64_t node = kept[random() % kept.size()];
    if (slots.Holds(node)) {
      ++held;
      ASSERT_EQ(reader.NodeOf(StackSlots::SlotOf(node)), node);
    } else {
      ++gone;
    }
  }
  EXPECT_GT(held, 1000u);
  EXPECT_GT(gone, 1000u);
}

TEST(StackSlotsTest, ANodeIsHeldUntilItsSlotComesAgain) {
  StackSlots slots;
  const uint64_t node = slots.Define(1);
  for (uint32_t i = 1; i < StackSlots::kSlots; ++i) slots.Define(1);
  EXPECT_TRUE(slots.Holds(node));
  slots.Define(1);
  EXPECT_FALSE(slots.Holds(node));
}

TEST(StackSlotsTest, ARestartForgetsEverything) {
  StackSlots slots;
  const uint64_t before = slots.Define(5);
  slots.Restart();
  EXPECT_FALSE(slots.Holds(before));
  const uint64_t after = slots.Define(1);
  EXPECT_TRUE(slots.Holds(after));
  EXPECT_NE(after, before);
}

}  // namespace
}  // namespace memtrace
