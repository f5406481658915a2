// What a reader makes of the definitions, kept in bounded memory.

#include "preload/written_stacks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "format/event_words.h"
#include "preload/stack_slots.h"

namespace memtrace {
namespace {

using format::StackMarker;
using Words = std::vector<uint64_t>;

void Define(Words* words, uint32_t parent, uint32_t first, const Words& nodes) {
  words->push_back(format::PathHead(parent, first, static_cast<uint32_t>(nodes.size())));
  words->insert(words->end(), nodes.begin(), nodes.end());
}

bool Read(WrittenStacks* stacks, const Words& words) {
  return stacks->Read(words.data(), words.data() + words.size());
}

TEST(WrittenStacksTest, TellsFramesInnermostFirstAndTheMarker) {
  WrittenStacks stacks;
  Words words;
  Define(&words, 0, 7,
         {format::NodeWord(static_cast<uint64_t>(StackMarker::kTruncated), format::kNoModule),
          format::NodeWord(0x1000, 0xabcd)});
  words.push_back(format::TimeWord(5));
  Define(&words, 8, 3, {0x2000});
  ASSERT_TRUE(Read(&stacks, words));
  uint64_t keys[4];
  const WrittenStacks::Stack stack = stacks.Find(3, keys, 4);
  EXPECT_TRUE(stack.defined);
  ASSERT_EQ(stack.frames, 2u);
  EXPECT_EQ(keys[0], 0x2000u);
  EXPECT_EQ(keys[1], 0x1000u | uint64_t{0xabcd} << 48);
  EXPECT_EQ(stack.marker, StackMarker::kTruncated);
}

TEST(WrittenStacksTest, ANodeOutlivesItsSlotAsAParent) {
  WrittenStacks stacks;
  Words words;
  Define(&words, 0, 1, {0x10, 0x20});
  Define(&words, 1, 1, {0x30});  // its own parent's slot
  ASSERT_TRUE(Read(&stacks, words));
  uint64_t keys[4];
  ASSERT_EQ(stacks.Find(2, keys, 4).frames, 2u);
  EXPECT_EQ(keys[1], 0x10u);
  ASSERT_EQ(stacks.Find(1, keys, 4).frames, 2u);
  EXPECT_EQ(keys[0], 0x30u);
  EXPECT_EQ(keys[1], 0x10u);
}

TEST(WrittenStacksTest, KnowsNothingThatWasNotDefined) {
  WrittenStacks stacks;
  uint64_t keys[4];
  EXPECT_FALSE(stacks.Find(1, keys, 4).defined);
  Words words;
  Define(&words, 0, 1, {0x10});
  ASSERT_TRUE(Read(&stacks, words));
  EXPECT_TRUE(stacks.Find(1, keys, 4).defined);
  EXPECT_FALSE(stacks.Find(2, keys, 4).defined);
  EXPECT_FALSE(stacks.Find(0, keys, 4).defined);
  EXPECT_FALSE(stacks.Find(1 << 23, keys, 4).defined);
  stacks.Forget();
  EXPECT_FALSE(stacks.Find(1, keys, 4).defined);
  Words orphan;
  Define(&orphan, 1, 5, {0x20});
  EXPECT_FALSE(Read(&stacks, orphan)) << "its parent was forgotten";
  EXPECT_FALSE(Read(&stacks, {0})) << "no event";
  EXPECT_FALSE(Read(&stacks, {format::PathHead(0, 1, 2), 0x10})) << "cut";
}

// Slots as they are given out, far more often than there are; each stack on the last.
TEST(WrittenStacksTest, KnowsWhatTheSlotsHoldInBoundedMemory) {
  StackSlots slots;
  WrittenStacks stacks;
  std::mt19937_64 random(5);
  uint64_t first_held = slots.first_held();
  uint64_t parent = 0;
  Words parent_stack;
  std::vector<uint64_t> keys(1000);
  for (int i = 0; i < 60'000; ++i) {
    if (i % 5000 == 0) slots.Restart();
    if (slots.first_held() != first_held) stacks.Forget();
    first_held = slots.first_held();
    if (!slots.Holds(parent) || parent_stack.size() > 400) {
      parent = 0;
      parent_stack.clear();
    }
    Words nodes(1 + random() % 40), words;
    for (uint64_t& node : nodes) node = 0x1000 + random() % 1000;
    const uint64_t first = slots.Define(static_cast<uint32_t>(nodes.size()));
    Define(&words, StackSlots::SlotOf(parent), StackSlots::SlotOf(first), nodes);
    ASSERT_TRUE(Read(&stacks, words));
    const size_t used = 1 + random() % nodes.size();
    Words stack = parent_stack;
    stack.insert(stack.end(), nodes.begin(), nodes.begin() + static_cast<long>(used));
    const uint64_t node = first + used - 1;
    const WrittenStacks::Stack found =
        stacks.Find(StackSlots::SlotOf(node), keys.data(), keys.size());
    ASSERT_TRUE(found.defined);
    ASSERT_EQ(Words(keys.begin(), keys.begin() + static_cast<long>(found.frames)),
              Words(stack.rbegin(), stack.rend()));
    parent = node;
    parent_stack = stack;
  }
  EXPECT_GT(slots.defined(), 4 * StackSlots::kSlots) << "no slot was used again";
  EXPECT_LE(stacks.nodes(), StackSlots::kSlots + 1000);
}

}  // namespace
}  // namespace memtrace
