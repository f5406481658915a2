// memcheck's rules, one by one, from a trace with a scan to loss records.

#include <gtest/gtest.h>

#include "tests/report/leak/leak_world.h"

namespace memtrace::report {
namespace {

using format::ScanHint;
using format::ScanRegionKind;
using format::ScanRegionUse;
using format::ScanThreadState;
using leak::LeakOptions;

struct Case {
  uint64_t root;      // a root's word, 0 none
  uint64_t in_a;      // a word of A, 0 none
  LeakKind a, b;
};

// memcheck's table of what can be between a root and a block.
TEST(LeakClassesTest, TheNineCasesAreMemchecks) {
  const Case cases[] = {
      {kB, 0, kDefinite, kReachable},           // 1: only B matters
      {kA, kB, kReachable, kReachable},         // 2
      {0, 0, kDefinite, kDefinite},             // 3
      {0, kB, kDefinite, kIndirect},            // 4
      {kB + 8, 0, kDefinite, kPossible},        // 5
      {kA, kB + 8, kReachable, kPossible},      // 6
      {kA + 8, kB, kPossible, kPossible},       // 7
      {kA + 8, kB + 8, kPossible, kPossible},   // 8
      {0, kB + 8, kDefinite, kIndirect},        // 9
  };
  int number = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(++number);
    World world;
    world.Block(kA, 32).Block(kB, 48);
    if (one.root != 0) world.Root(one.root);
    if (one.in_a != 0) world.In(kA + 16, one.in_a);
    const LeakScan& scan = world.Check();
    EXPECT_EQ(scan.state, LeakScan::State::kDone) << scan.failure;
    EXPECT_EQ(world.KindOf(kA), one.a);
    EXPECT_EQ(world.KindOf(kB), one.b);
  }
}

TEST(LeakClassesTest, ABlockOnBothWaysIsReachable) {
  // First met by an interior pointer, then by a start: what it leads to rises with it.
  World world;
  world.Block(kA, 32).Block(kB, 32).Block(kC, 32);
  world.Root(kA + 8).In(kA, kB).Root(kA).In(kB, kC);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kReachable);
  EXPECT_EQ(world.KindOf(kC), kReachable);
}

TEST(LeakClassesTest, APointerBehindTheLastByteIsNone) {
  World world;
  world.Block(kA, 32).Block(kB, 0).Block(kC, 24);
  world.Root(kA + 32).Root(kB).Root(kC + 23);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kDefinite);
  EXPECT_EQ(world.KindOf(kB), kReachable) << "a block of size 0 has a start";
  EXPECT_EQ(world.KindOf(kC), kPossible);
}

TEST(LeakClassesTest, OnlyWholeAlignedWordsOfABlockAreRead) {
  World world;
  world.Block(kA, 20).Block(kB, 32).Block(kC, 32);
  world.Root(kA).In(kA + 16, kB).In(kA + 12, kC);  // behind the last whole word; not aligned
  world.Check();
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_EQ(world.KindOf(kC), kDefinite);
}

TEST(LeakClassesTest, FreeMemoryOfTheHeapIsNoRoot) {
  World world;
  world.Block(kA, 32).Block(kB, 32);
  world.In(World::kHeap + 0x8000, kA);  // in no live block
  world.trace.Thread(1).Free(kB);
  world.Root(kB);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kDefinite);
  EXPECT_EQ(world.found.size(), 1u) << "what is freed is in no class";
  EXPECT_EQ(Total(scan, kDefinite).bytes, 32u);
}

TEST(LeakClassesTest, ALiveBlocksContentIsNoRootWhereverItIs) {
  World world;
  const uint32_t mapped = world.scan.Region(ScanRegionKind::kAnonymous, ScanRegionUse::kRoot,
                                            0x70000000, 0x70100000);
  world.Block(0x70000010, 0x1000).Block(kA, 32).Block(kB, 32);
  world.scan.Word(mapped, 0x70000020, kA).Word(mapped, 0x70080000, kB);
  world.Check();
  EXPECT_EQ(world.KindOf(0x70000010), kDefinite);
  EXPECT_EQ(world.KindOf(kA), kIndirect);
  EXPECT_EQ(world.KindOf(kB), kReachable) << "the rest of the mapping is a root";
}

TEST(LeakClassesTest, RegistersAndStacksAreRoots) {
  World world;
  const uint32_t stack = world.scan.Region(ScanRegionKind::kStack, ScanRegionUse::kRoot,
                                           0x7ffc0000, 0x7ffc1000, "[stack]", 1);
  world.Block(kA, 32).Block(kB, 32).Block(kC, 32);
  world.scan.Thread(4242, 1, ScanThreadState::kAsking, {0, kA, 7, kC + 8})
      .Word(stack, 0x7ffc0010, kB);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kReachable);
  EXPECT_EQ(world.KindOf(kC), kPossible);
}

TEST(LeakClassesTest, BelowTheStackPointerOfACallerIsNothing) {
  World world;  // the scan builder's threads have their stack pointers at 0x7ffc0000
  const uint32_t stack = world.scan.Region(ScanRegionKind::kStack, ScanRegionUse::kRoot,
                                           0x7ffbff80, 0x7ffc1000, "[stack]", 1);
  world.Block(kA, 32).Block(kB, 32);
  world.scan.Thread(4242, 1, ScanThreadState::kAsking, {})
      .Word(stack, 0x7ffbfff8, kA).Word(stack, 0x7ffc0000, kB);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kDefinite);
  EXPECT_EQ(world.KindOf(kB), kReachable);
}

TEST(LeakClassesTest, RelroDataIsNoRoot) {
  World world;
  const uint32_t relro = world.scan.Region(ScanRegionKind::kRelro, ScanRegionUse::kNotScanned,
                                           0x650000, 0x651000, "/usr/bin/app");
  world.Block(kA, 32);
  world.scan.Word(relro, 0x650000, kA);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kDefinite);
}

// The header of the chunk behind a block lies in the block's last 8 usable bytes.
TEST(LeakClassesTest, AChunkHeaderInLibcsDataIsNoPointer) {
  for (const bool libc : {true, false}) {
    World world;
    const uint32_t data = world.scan.Region(
        ScanRegionKind::kModuleData, ScanRegionUse::kRoot, 0x7f0000000000, 0x7f0000002000,
        libc ? "/lib/x86_64-linux-gnu/libc.so.6" : "/lib/libother.so.6");
    world.Block(kA, 24).Block(kB, 40).Block(kC, 39);
    world.scan.Words(data, {{0x7f0000000010, kA + 16}, {0x7f0000000018, kB + 8},
                            {0x7f0000000020, kC + 32}});
    world.Check();
    EXPECT_EQ(world.KindOf(kA), libc ? kDefinite : kPossible);
    EXPECT_EQ(world.KindOf(kB), kPossible) << "that is no header";
    EXPECT_EQ(world.KindOf(kC), libc ? kDefinite : kPossible) << "usable size is 40";
  }
}

// A free chunk that is the only large one of its size: words 2 and 3 of the block that it becomes.
TEST(LeakClassesTest, AChunksLinksToItselfAreNoPointersToTheBlockInFront) {
  for (const auto allocator : {format::AllocatorKind::kGlibc, format::AllocatorKind::kOther}) {
    TraceBuilder::Options options = World::Exact();
    options.allocator = allocator;
    World world(options);
    const uint64_t buffer = kA + 48;  // the chunk behind kA's
    world.Block(kA, 40).Block(buffer, 99).Root(buffer);
    world.In(buffer + 16, buffer - 16).In(buffer + 24, buffer - 16);
    world.Check();
    EXPECT_EQ(world.KindOf(kA),
              allocator == format::AllocatorKind::kGlibc ? kDefinite : kPossible);
  }
}

// The last word of an object is where the header of the next chunk is.
TEST(LeakClassesTest, PointersToTheLastWordsOfObjectsArePointers) {
  // struct Node { long a, b; Node** link; }, and each link has the address of the last one's.
  World list;
  for (uint64_t node = kA; node < kA + 4 * 32; node += 32) {
    list.Block(node, 24);
    if (node != kA) list.In(node + 16, node - 16);
  }
  list.Root(kA + 3 * 32 + 16);
  list.Check();
  for (uint64_t node = kA; node < kA + 4 * 32; node += 32) {
    EXPECT_EQ(list.KindOf(node), kPossible);
  }

  // The second base of objects of 24 bytes, wherever in a block the pointers are.
  for (const uint64_t at : {0, 1, 2, 6}) {
    World bases;
    const uint64_t owner = kA + 32;
    bases.Block(kA, 24).Block(owner, 64).Block(kB, 24).Root(owner);
    bases.In(owner + 8 * at, kA + 16).In(owner + 8 * at + 8, kB + 16);
    bases.Check();
    EXPECT_EQ(bases.KindOf(kA), kPossible) << at;
    EXPECT_EQ(bases.KindOf(kB), kPossible) << at;
  }

  // One of the two words, and both of them elsewhere than in words 2 and 3.
  for (const uint64_t at : {2, 3}) {
    World one;
    one.Block(kA, 24).Block(kA + 32, 64).Root(kA + 32).In(kA + 32 + 8 * at, kA + 16);
    one.Check();
    EXPECT_EQ(one.KindOf(kA), kPossible) << at;
  }
  for (const uint64_t at : {0, 1, 3, 4}) {
    World both;
    both.Block(kA, 24).Block(kA + 32, 64).Root(kA + 32);
    both.In(kA + 32 + 8 * at, kA + 16).In(kA + 40 + 8 * at, kA + 16);
    both.Check();
    EXPECT_EQ(both.KindOf(kA), kPossible) << at;
  }
}

// Its tables begin at the first multiple of 128 bytes in a block.
TEST(LeakClassesTest, TheLoadersTablesAreReachable) {
  for (const bool loader : {true, false}) {
    World world;
    const uint32_t data = world.scan.Region(
        ScanRegionKind::kModuleData, ScanRegionUse::kRoot, 0x7f0000000000, 0x7f0000002000,
        loader ? "/lib64/ld-linux-x86-64.so.2" : "/lib/libother.so.6");
    const uint64_t table = World::kHeap + 0x10010, other = World::kHeap + 0x20010;
    world.Block(table, 2304).Block(other, 2304);
    world.scan.Words(data, {{0x7f0000000160, World::kHeap + 0x10080}, {0x7f0000000168, other + 8}});
    world.Check();
    EXPECT_EQ(world.KindOf(table), loader ? kReachable : kPossible);
    EXPECT_EQ(world.KindOf(other), kPossible) << "that is no such table";
  }
}

TEST(LeakClassesTest, WhatTheProgramDeclaresIsARoot) {
  World world;
  world.Block(kA, 32).Block(kB, 32).Block(kC, 32);
  world.In(kA, kB).scan.Hint(ScanHint::kIgnored, kA)
      .Hint(ScanHint::kRootRegion, World::kHeap + 0x8000, World::kHeap + 0x9000);
  world.In(World::kHeap + 0x8ff8, kC);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kReachable) << "and what it points to";
  EXPECT_EQ(world.KindOf(kC), kReachable);
}

TEST(LeakClassesTest, AReallocUnderWayHoldsWhatItHeld) {
  World world;
  world.Block(kA, 32).Block(kB, 32);
  world.In(kA, kB).trace.Thread(1).ReallocIntent(kA);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kReachable);
}

TEST(LeakClassesTest, WhatHappensAfterTheInstantDoesNotCount) {
  World world;
  world.Block(kA, 32);
  auto& main = world.trace.Thread(1);
  main.At(World::kScanNs).Malloc(kB, 32).At(World::kScanNs + 1).Free(kA).Malloc(kC, 32);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.found.size(), 2u);
  EXPECT_EQ(Total(scan, kDefinite).blocks, 2u);
  EXPECT_EQ(scan.time_ns, World::kScanNs);
  EXPECT_EQ(world.analyzed.analysis.totals.live_blocks, 2u) << "at the end: B and C";
}

TEST(LeakClassesTest, OfACycleTheLowestAddressLeads) {
  World world;
  world.Block(kB, 48).Block(kA, 32).Block(kC, 64);
  world.In(kA, kB).In(kB, kA).In(kB + 8, kC);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kDefinite);
  EXPECT_EQ(world.KindOf(kB), kIndirect);
  EXPECT_EQ(world.KindOf(kC), kIndirect);
  ASSERT_EQ(scan.records.size(), 3u);
  const LossRecord& last = scan.records.back();
  EXPECT_EQ(last.kind, kDefinite);
  EXPECT_EQ(last.bytes, 32u);
  EXPECT_EQ(last.indirect_bytes, 112u);
  EXPECT_EQ(last.indirect_blocks, 2u);
  EXPECT_EQ(Total(scan, kDefinite).bytes, 32u) << "what is indirect is not counted twice";
  EXPECT_EQ(Total(scan, kIndirect).bytes, 112u);
}

TEST(LeakClassesTest, OrTheOneAllocatedFirst) {
  World world;
  world.Block(kB, 48).Block(kA, 32);
  world.In(kA, kB).In(kB, kA);
  LeakOptions options;
  options.leader = leak::LeaderBy::kSequence;
  world.Check(options);
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_EQ(world.KindOf(kA), kIndirect);
}

// Wherever they lie and whichever came first.
TEST(LeakClassesTest, OrTheOneWhoseCodeComesFirst) {
  constexpr uint64_t kFirst = 0x402100, kSecond = 0x402200;
  LeakOptions options;
  options.leader = leak::LeaderBy::kCode;
  for (const bool first_is_lower : {true, false}) {
    for (const bool first_came_first : {true, false}) {
      World world;
      const uint64_t first = first_is_lower ? kA : kB, second = first_is_lower ? kB : kA;
      if (first_came_first) world.Block(first, 48, kFirst);
      world.Block(second, 32, kSecond);
      if (!first_came_first) world.Block(first, 48, kFirst);
      world.In(kA, kB).In(kB, kA);
      world.Check(options);
      EXPECT_EQ(world.KindOf(first), kDefinite);
      EXPECT_EQ(world.KindOf(second), kIndirect);
    }
  }
}

TEST(LeakClassesTest, ALeaderMetLaterJoinsTheOther) {
  World world;  // C leads to A, which leads to B; A was looked at first
  world.Block(kA, 32).Block(kB, 48).Block(kC, 64);
  world.In(kA, kB).In(kC, kA);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kIndirect);
  EXPECT_EQ(world.KindOf(kC), kDefinite);
  EXPECT_EQ(scan.records.back().indirect_bytes, 80u);
}

TEST(LeakClassesTest, HeuristicsAreMemchecks) {
  // An old std::string: length 3, capacity 7, one reference.
  const auto string_world = [](uint64_t length, uint32_t size) {
    auto world = std::make_unique<World>();
    world->Block(kA, size).Root(kA + 24);
    world->scan.Target(kA + 24, length, 7, 0);
    return world;
  };
  const auto word_world = [](uint64_t word, uint32_t size) {
    auto world = std::make_unique<World>();
    world->Block(kA, size).Root(kA + 8);
    world->scan.Target(kA + 8, word);
    return world;
  };
  auto world = string_world(3, 32);
  LeakScan scan = world->Check();
  EXPECT_EQ(world->KindOf(kA), kReachable);
  EXPECT_EQ(scan.by_heuristic[1].bytes, 32u);
  EXPECT_EQ(scan.records.at(0).heuristic_blocks, 1u);
  world = string_world(8, 32);
  world->Check();
  EXPECT_EQ(world->KindOf(kA), kPossible) << "longer than its capacity";
  world = string_world(3, 33);
  world->Check();
  EXPECT_EQ(world->KindOf(kA), kPossible) << "the size is another";

  world = word_world(24, 32);
  scan = world->Check();
  EXPECT_EQ(world->KindOf(kA), kReachable);
  EXPECT_EQ(scan.by_heuristic[2].blocks, 1u) << "length64 comes before newarray";
  world = word_world(6, 32);
  scan = world->Check();
  EXPECT_EQ(scan.by_heuristic[3].blocks, 1u) << "six elements of four bytes";
  world = word_world(7, 32);
  world->Check();
  EXPECT_EQ(world->KindOf(kA), kPossible);
  LeakOptions none;
  none.heuristics = *leak::ParseHeuristics("none");
  world = word_world(6, 32);
  world->Check(none);
  EXPECT_EQ(world->KindOf(kA), kPossible);
  LeakOptions only_length;
  only_length.heuristics = *leak::ParseHeuristics("length64,stdstring");
  world = word_world(6, 32);
  world->Check(only_length);
  EXPECT_EQ(world->KindOf(kA), kPossible);

  World bases;
  bases.Block(kA, 64).Root(kA + 40).Block(kB, 64).Root(kB + 40);
  bases.scan.Vtable(kA).Vtable(kA + 40).Vtable(kB + 40);
  scan = bases.Check();
  EXPECT_EQ(bases.KindOf(kA), kReachable);
  EXPECT_EQ(scan.by_heuristic[4].bytes, 64u);
  EXPECT_EQ(bases.KindOf(kB), kPossible) << "its start is no vtable's address";
  EXPECT_FALSE(leak::ParseHeuristics("newaray").ok());
}

TEST(LeakClassesTest, ATrueStartPointerOutranksAHeuristic) {
  World world;
  world.Block(kA, 32).Root(kA + 8).Block(kB, 32).Root(kB + 8).In(kB + 24, kA);
  world.scan.Target(kA + 8, 24);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kB), kPossible);
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(scan.by_heuristic[2].blocks, 0u)
      << "memcheck takes any word with the start for it, also a possibly lost block's";
}

TEST(LeakClassesTest, ASignalStackIsKeptByTheKernel) {
  World world;
  world.Block(kA, 0x2000).Block(kA + 0x4000, 0x1000);
  // Of the second nothing but the begin is a block: it was freed, and is others now.
  world.scan.Raw(2, {4242, 1, 2, 0x7ffc0100, 0x7ffc0000, 0x7ffc1000, 0, kA, kA + 0x2000, 0});
  world.scan.Raw(2, {4243, 2, 2, 0x7ffd0100, 0x7ffd0000, 0x7ffd1000, 0, kA + 0x4000, kA + 0x6000, 0});
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kA + 0x4000), kDefinite);
}

// malloc_usable_size() says what more there is than was asked for.
TEST(LeakClassesTest, WhatIsBehindTheBytesAskedForIsContentOnceTheProgramHasAsked) {
  for (const bool asked : {true, false}) {
    World world;
    auto& main = world.trace.Thread(1, 4242, "main").At(500);
    const uint32_t slot = main.Stack({0x401000, 0x402000});
    main.Malloc(kA, 20, slot, 4).Malloc(kB, 32, slot, 8).Malloc(kC, 33, slot, 23);
    world.Root(kA).In(kA + 16, kB);
    world.scan.Word(1, World::kData + 0x100, kC + 40).Word(1, World::kData + 0x108, kC + 48);
    if (asked) world.scan.Hint(ScanHint::kUsableSizes, 0);
    world.Check();
    EXPECT_EQ(world.KindOf(kB), asked ? kReachable : kDefinite);
    EXPECT_EQ(world.KindOf(kC), asked ? kPossible : kDefinite);
  }
  World header;  // and where the header behind it is, it points nowhere
  auto& main = header.trace.Thread(1, 4242, "main").At(500);
  main.Malloc(kC, 33, main.Stack({0x401000, 0x402000}), 23);
  header.Root(kC + 48).scan.Hint(ScanHint::kUsableSizes, 0);
  header.Check();
  EXPECT_EQ(header.KindOf(kC), kDefinite);
}

}  // namespace
}  // namespace memtrace::report
