#include "preload/stack_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <unordered_map>
#include <vector>

namespace memtrace {
namespace {

constexpr size_t kLargest = 8192;

// The reader's side: definitions of slots, resolved when they arrive.
class Reader {
 public:
  void Define(uint32_t slot, uint32_t parent_slot, uint64_t key) {
    std::vector<uint64_t> stack = parent_slot == 0 ? std::vector<uint64_t>() : slots_[parent_slot];
    stack.push_back(key);
    slots_[slot] = std::move(stack);
  }
  const std::vector<uint64_t>& Stack(uint32_t slot) { return slots_[slot]; }

 private:
  std::unordered_map<uint32_t, std::vector<uint64_t>> slots_;
};

uint32_t Intern(StackTrie& trie, Reader& reader, const std::vector<uint64_t>& stack) {
  trie.GrowIfPressed();
  StackTrie::Cursor cursor = trie.Root();
  for (uint64_t key : stack) {
    const uint32_t parent = cursor.slot;
    if (trie.Child(&cursor, key)) reader.Define(cursor.slot, parent, key);
  }
  return cursor.slot;
}

TEST(StackTrieTest, DefinesAStackOnce) {
  StackTrie trie;
  ASSERT_TRUE(trie.Init(kLargest));
  Reader reader;
  const std::vector<uint64_t> stack = {1, 2, 3};
  const uint32_t slot = Intern(trie, reader, stack);
  EXPECT_EQ(trie.defined(), 3u);
  EXPECT_EQ(Intern(trie, reader, stack), slot);
  EXPECT_EQ(trie.defined(), 3u);
  EXPECT_EQ(reader.Stack(slot), stack);
}

// Whatever is evicted and defined again: the slot of an event always names the
// stack the event had.
TEST(StackTrieTest, NamesTheRightStackUnderAnyPressure) {
  StackTrie trie;
  ASSERT_TRUE(trie.Init(kLargest));
  Reader reader;
  std::mt19937_64 random(3);
  for (int i = 0; i < 50'000; ++i) {
    // Depths to 60, few keys a level: much sharing, and far more stacks than slots.
    std::vector<uint64_t> stack(1 + random() % 60);
    for (uint64_t& key : stack) key = 0x400000 + random() % 3 * 16;
    const uint32_t slot = Intern(trie, reader, stack);
    ASSERT_GT(slot, 0u);
    ASSERT_LE(slot, trie.capacity());
    ASSERT_EQ(reader.Stack(slot), stack) << "stack " << i;
  }
  EXPECT_EQ(trie.capacity(), kLargest) << "pressure makes it grow, up to its bound";
}

TEST(StackTrieTest, HoldsAStackDeeperThanItself) {
  StackTrie trie;
  ASSERT_TRUE(trie.Init(kLargest));
  Reader reader;
  std::vector<uint64_t> stack;
  for (uint64_t i = 0; i < 20'000; ++i) stack.push_back(0x1000 + i);
  EXPECT_EQ(reader.Stack(Intern(trie, reader, stack)), stack);
}

TEST(StackTrieTest, ARestartForgetsEverything) {
  StackTrie trie;
  ASSERT_TRUE(trie.Init(kLargest));
  Reader first, second;
  Intern(trie, first, {1, 2});
  trie.Restart();
  const uint32_t slot = Intern(trie, second, {1, 2});
  EXPECT_EQ(second.Stack(slot), (std::vector<uint64_t>{1, 2})) << "the new reader was told all";
}

}  // namespace
}  // namespace memtrace
