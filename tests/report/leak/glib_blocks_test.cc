// What GLib keeps behind its own pointers, found by its place in GLib's tables of types and of slices.

#include <gtest/gtest.h>

#include <memory>

#include "tests/report/leak/leak_world.h"

namespace memtrace::report {
namespace {

using leak::LeakOptions;
using leak::Pointer;

// What GLib makes of memory: the node of a type, its data, the class, and an object with private data.
struct GLibWorld : World {
  static constexpr uint64_t kNode = kHeap + 0x10000, kData = kHeap + 0x11000, kClass = kHeap + 0x12000,
                            kObject = kHeap + 0x13000, kText = kHeap + 0x14000;

  explicit GLibWorld(const char* library = "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0") {
    trace.Module(9, 0, 0x7f0000000000, 0x7f0000100000, 0x7f0000000000, library);
    Block(kNode, 80).Block(kData, 96).Block(kClass, 136).Block(kObject, 64).Block(kText, 6);
    Root(kNode);
    In(kNode + 40, kData).In(kNode + 64, kNode);  // data and supers[0]
    In(kData + 56, kClass).In(kClass, kNode);
    In(kObject, kText).In(kObject + 32, kClass);  // what is private, the object
    Root(kObject + 32);
  }
};

TEST(GLibBlocksTest, AnObjectWithPrivateDataIsReachableByItsPlace) {
  GLibWorld world;
  const LeakScan scan = world.Check();
  EXPECT_EQ(world.KindOf(GLibWorld::kObject), kReachable);
  EXPECT_EQ(world.KindOf(GLibWorld::kText), kReachable) << "which hangs on it";
  EXPECT_EQ(scan.by_heuristic[static_cast<size_t>(Pointer::kGObject)].bytes, 64u);

  GLibWorld without;
  LeakOptions options;
  options.heuristics = *leak::ParseHeuristics("stdstring,gslice");
  without.Check(options);
  EXPECT_EQ(without.KindOf(GLibWorld::kObject), kPossible);
  EXPECT_EQ(without.KindOf(GLibWorld::kText), kPossible);

  GLibWorld other("/usr/lib/x86_64-linux-gnu/libother.so.0");
  other.Check();
  EXPECT_EQ(other.KindOf(GLibWorld::kObject), kPossible) << "in a program that has no GLib";
}

TEST(GLibBlocksTest, AClosureIsReachableByItsPlace) {
  const auto kind_of = [](uint32_t size, uint64_t offset, const char* library) {
    GLibWorld world(library);
    world.Block(kA, size).Root(kA + offset);
    world.Check();
    return world.KindOf(kA);
  };
  constexpr char kGLib[] = "/usr/lib/libglib-2.0.so.0.7400.6";
  EXPECT_EQ(kind_of(64, 32, kGLib), kReachable);
  EXPECT_EQ(kind_of(72, 32, kGLib), kReachable);
  EXPECT_EQ(kind_of(80, 32, kGLib), kPossible);
  EXPECT_EQ(kind_of(64, 40, kGLib), kPossible);
  EXPECT_EQ(kind_of(64, 32, "/usr/lib/libother.so.0"), kPossible);
}

TEST(GLibBlocksTest, WhatLeadsToNoClassIsNoObject) {
  GLibWorld world;
  // A block whose word leads to one that begins with a node, to which no data of the node leads.
  world.Block(kA, 80).Block(kB, 136).Root(kA + 32).In(kA + 32, kB).In(kB, GLibWorld::kNode);
  // And one that leads into the class, not to its start.
  world.Block(kC, 80).Root(kC + 32).In(kC + 32, GLibWorld::kClass + 8);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kPossible);
  EXPECT_EQ(world.KindOf(kC), kPossible);
}

// As many blocks lead to the table as it leads to: to look at each of its words for each of them takes for ever.
TEST(GLibBlocksTest, ATableThatAllItsBlocksLeadToIsNoType) {
  constexpr uint32_t kBlocks = 30'000;
  constexpr uint64_t kTable = World::kHeap + 0x100000, kFirst = World::kHeap + 0x200000;
  GLibWorld world;
  world.Block(kTable, 8 * (kBlocks + 1)).Root(kTable).In(kTable, kTable);
  for (uint32_t i = 0; i < kBlocks; ++i) world.Block(kFirst + 64 * i, 48, 0x402000);
  for (uint32_t i = 0; i < kBlocks; ++i) world.In(kTable + 8 * (i + 1), kFirst + 64 * i);
  for (uint32_t i = 0; i < kBlocks; ++i) world.In(kFirst + 64 * i, kTable);
  world.Check();
  EXPECT_EQ(world.KindOf(kFirst), kReachable);
  EXPECT_EQ(world.KindOf(GLibWorld::kObject), kReachable);
}

TEST(GLibBlocksTest, ASlabIsReachableByItsSlices) {
  constexpr uint64_t kSlab = World::kHeap + 0x20000, kOther = World::kHeap + 0x21000;
  const auto world_of = [](uint32_t size, uint64_t links) {
    auto world = std::make_unique<GLibWorld>();
    world->Block(kSlab, size).Block(kOther, size).Root(kSlab + 0x80);
    world->In(kSlab + links, kOther + links - 16).In(kSlab + links + 8, kOther + links - 16);
    world->In(kOther + links, kSlab + links - 16).In(kOther + links + 8, kSlab + links - 16);
    return world;
  };
  auto world = world_of(1024 - 16, 1024 - 32);
  const LeakScan scan = world->Check();
  EXPECT_EQ(world->KindOf(kSlab), kReachable);
  EXPECT_EQ(world->KindOf(kOther), kReachable) << "by the link";
  EXPECT_EQ(scan.by_heuristic[static_cast<size_t>(Pointer::kGSlice)].blocks, 2u);
  world = world_of(1024 - 24, 1024 - 32);
  world->Check();
  EXPECT_EQ(world->KindOf(kSlab), kPossible) << "of another size";
  world = world_of(1024 - 16, 1024 - 40);
  world->Check();
  EXPECT_EQ(world->KindOf(kSlab), kPossible) << "links elsewhere";
}

}  // namespace
}  // namespace memtrace::report
