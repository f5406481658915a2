#include "preload/bootstrap_arena.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace memtrace {
namespace {

TEST(BootstrapArenaTest, GivesZeroedAlignedBlocksThatDoNotOverlap) {
  static BootstrapArena arena;
  uintptr_t last_end = 0;
  for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
    auto* block = static_cast<char*>(arena.Allocate(100, alignment));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    EXPECT_GE(reinterpret_cast<uintptr_t>(block), last_end);
    EXPECT_EQ(BootstrapArena::Size(block), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(block[i], 0);
    last_end = reinterpret_cast<uintptr_t>(block) + 100;
  }
}

TEST(BootstrapArenaTest, KnowsItsOwn) {
  static BootstrapArena arena;
  const void* block = arena.Allocate(1);
  int other;
  EXPECT_TRUE(arena.Owns(block));
  EXPECT_FALSE(arena.Owns(&other));
  EXPECT_FALSE(arena.Owns(nullptr));
}

TEST(BootstrapArenaTest, ReturnsNullWhenExhausted) {
  static BootstrapArena arena;
  EXPECT_EQ(arena.Allocate(1 << 20), nullptr);
  EXPECT_EQ(arena.Allocate(SIZE_MAX), nullptr);
  int blocks = 0;
  while (arena.Allocate(1000) != nullptr) ++blocks;
  EXPECT_GT(blocks, 32);
  EXPECT_LT(blocks, 66);
  EXPECT_EQ(arena.Allocate(1000), nullptr) << "and stays so";
}

}  // namespace
}  // namespace memtrace
