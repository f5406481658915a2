// memcheck's rules, one by one, from a trace with a scan to loss records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "report/packer.h"
#include "tests/report/leak_world.h"

namespace memtrace::report {
namespace {

using format::ScanHint;
using format::ScanReason;
using format::ScanRegionKind;
using format::ScanRegionUse;
using format::ScanShow;
using format::ScanThreadState;
using leak::LeakOptions;
using leak::Pointer;

constexpr uint64_t kA = World::kHeap + 0x1010, kB = World::kHeap + 0x2010,
                   kC = World::kHeap + 0x3010;
constexpr auto kDefinite = LeakKind::kDefinite;
constexpr auto kIndirect = LeakKind::kIndirect;
constexpr auto kPossible = LeakKind::kPossible;
constexpr auto kReachable = LeakKind::kReachable;

LeakAmount Total(const LeakScan& scan, LeakKind kind) {
  return scan.totals[static_cast<size_t>(kind)];
}

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
  options.leader_by_sequence = true;
  world.Check(options);
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_EQ(world.KindOf(kA), kIndirect);
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

TEST(LeakRecordsTest, AreSortedByBytesThenKindThenBlocks) {
  World world;
  world.Block(kA, 64, 0x402000).Block(kB, 64, 0x403000).Block(kC, 16, 0x404000);
  world.Block(kC + 0x100, 48, 0x404000).Root(kA);
  const LeakScan& scan = world.Check();
  ASSERT_EQ(scan.records.size(), 3u);
  EXPECT_EQ(scan.records[0].kind, kReachable) << "of equals the worse is last";
  EXPECT_EQ(scan.records[1].blocks, 1u);
  EXPECT_EQ(scan.records[2].blocks, 2u);
  EXPECT_EQ(scan.records[2].bytes, 64u);
}

TEST(LeakRecordsTest, ResolutionSaysHowManyFramesMustBeEqual) {
  for (const auto& [frames, records] : std::vector<std::pair<size_t, size_t>>{{0, 3}, {4, 2},
                                                                              {2, 1}}) {
    World world;
    auto& main = world.trace.Thread(1, 4242, "main");
    main.At(1000);
    // The function is the first of the frames that count.
    main.Malloc(kA, 16, main.Stack({0x1000, 0x2000, 0x3000, 0x4000, 0x5000}));
    main.Malloc(kB, 16, main.Stack({0x1008, 0x2000, 0x3000, 0x4000, 0x5000}));
    main.Malloc(kC, 16, main.Stack({0x1000, 0x2000, 0x3008, 0x4000, 0x5000}));
    LeakOptions options;
    options.resolution.frames = frames;
    EXPECT_EQ(world.Check(options).records.size(), records) << frames;
  }
}

// A trace with several scans, at 1000 us, 2000 us, ...
std::vector<LeakScan> Scans(ScanShow last) {
  TraceBuilder trace(World::Exact());
  auto& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  const uint32_t a = main.Stack({0x401000, 0x402000}), b = main.Stack({0x401000, 0x403000}),
                 c = main.Stack({0x401000, 0x404000});
  main.Malloc(kA, 16, a).Malloc(kB, 32, b).At(1'500'000).Malloc(kA + 64, 16, a).Malloc(kC, 8, c)
      .Free(kB);
  for (uint32_t i = 1; i <= 2; ++i) {
    ScanBuilder(i, trace.TicksAt(i * 1'000'000), ScanReason::kRequest,
                i == 2 ? last : ScanShow::kAny, "phase").Done().AddTo(&trace);
  }
  trace.End(0, 3'000'000);
  return Analyze(trace.Build()).analysis.leak_scans;
}

TEST(LeakRecordsTest, ChangeFromScanToScan) {
  const auto shown = [](const LeakScan& scan) {
    std::vector<uint64_t> blocks;
    for (const LossRecord& record : scan.records) {
      if (leak::IsShown(record, scan.show)) blocks.push_back(record.blocks);
    }
    return blocks;
  };
  std::vector<LeakScan> scans = Scans(ScanShow::kAny);
  ASSERT_EQ(scans.size(), 2u);
  EXPECT_EQ(scans[0].label, "phase");
  EXPECT_EQ(scans[0].reason, ScanReason::kRequest);
  EXPECT_THAT(shown(scans[0]), testing::ElementsAre(1, 1));
  EXPECT_THAT(shown(scans[1]), testing::ElementsAre(1, 2));
  EXPECT_TRUE(scans[1].records[0].is_new);
  EXPECT_EQ(scans[1].records[1].before.bytes, 16u);
  EXPECT_THAT(shown(Scans(ScanShow::kNew)[1]), testing::ElementsAre(1));
  EXPECT_THAT(shown(Scans(ScanShow::kIncreased)[1]), testing::ElementsAre(1, 2));
  scans = Scans(ScanShow::kChanged);
  EXPECT_THAT(shown(scans[1]), testing::ElementsAre(0, 1, 2)) << "what is gone is told once";
  EXPECT_EQ(scans[1].records[0].before.bytes, 32u);
}

TEST(LeakScanTest, OneThatDidNotEndConcludesNothing) {
  TraceBuilder trace(World::Exact());
  trace.Thread(1, 4242, "main").At(1000).Malloc(kA, 32);
  ScanBuilder(1, trace.TicksAt(2000)).AddTo(&trace);
  ScanBuilder(2, trace.TicksAt(3000)).Failed("fork: no memory").AddTo(&trace);
  ScanBuilder third(3, trace.TicksAt(4000));
  third.AddTo(&trace);
  ++third.sequence;
  third.Done().AddTo(&trace);
  trace.End(0, 5000);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  ASSERT_EQ(analysis.leak_scans.size(), 3u);
  EXPECT_EQ(analysis.leak_scans[0].state, LeakScan::State::kCutShort);
  EXPECT_EQ(analysis.leak_scans[1].state, LeakScan::State::kFailed);
  EXPECT_EQ(analysis.leak_scans[1].failure, "fork: no memory");
  EXPECT_EQ(analysis.leak_scans[2].state, LeakScan::State::kCutShort) << "block 2 is missing";
  for (const LeakScan& scan : analysis.leak_scans) {
    EXPECT_TRUE(scan.records.empty());
    EXPECT_EQ(Total(scan, kDefinite).blocks, 0u);
  }
}

TEST(LeakScanTest, VtablesMayComeBeforeItsBeginning) {
  World world;
  ScanBuilder vtables(1);
  vtables.Vtable(World::kData).AddTo(&world.trace);
  world.scan.sequence = vtables.sequence;
  world.Block(World::kHeap, 64);
  EXPECT_EQ(Total(world.Check(), kDefinite).blocks, 1u);
}

TEST(LeakScanTest, OfASampleSaysThatNothingIsKnown) {
  TraceBuilder::Options options = World::Exact();
  options.sample_bytes = 1024;
  World world(options);
  world.Block(kA, 32);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(scan.state, LeakScan::State::kFailed);
  EXPECT_THAT(scan.failure, testing::HasSubstr("sample"));
}

TEST(LeakScanTest, WhereBlocksAreUnknownTheHeapIsARoot) {
  TraceBuilder::Options options = World::Exact();
  options.file_flags = format::kFileForked;
  World world(options);
  world.Block(kA, 32).Block(kB, 32);
  world.In(World::kHeap + 0x8000, kA);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_THAT(scan.notes, testing::Contains(testing::HasSubstr("parent process")));
}

// Free chunks are linked by the addresses of their headers, of which each lies in the block before it.
TEST(LeakScanTest, WhereTheHeapIsARootChunkHeadersInItAreNoPointers) {
  for (const auto allocator : {format::AllocatorKind::kGlibc, format::AllocatorKind::kOther}) {
    TraceBuilder::Options options = World::Exact();
    options.file_flags = format::kFileForked;
    options.allocator = allocator;
    World world(options);
    world.Block(kA, 24).Block(kB, 40).Block(kC, 39);
    world.In(World::kHeap + 0x8000, kA + 16).In(World::kHeap + 0x8008, kB + 8);
    world.In(World::kHeap + 0x8010, kC + 32);
    world.Check();
    const bool glibc = allocator == format::AllocatorKind::kGlibc;
    EXPECT_EQ(world.KindOf(kA), glibc ? kDefinite : kPossible);
    EXPECT_EQ(world.KindOf(kB), kPossible) << "that is no header";
    EXPECT_EQ(world.KindOf(kC), glibc ? kDefinite : kPossible);
  }
}

TEST(LeakScanTest, WhereAModuleAllocatesUnseenTheHeapIsARoot) {
  World world;
  world.trace.Module(7, format::kModulePermanent, 0x900000, 0x910000, 0x900000, "/lib/libpast.so.1");
  world.Block(kA, 32).Block(kB, 32);
  world.In(World::kHeap + 0x8000, kA);
  world.scan.Hint(ScanHint::kAllocatesUnseen, 0x900000, 0x910000);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_FALSE(scan.frees_unseen);
  EXPECT_THAT(scan.notes, testing::Contains(testing::HasSubstr("what libpast.so.1 allocated past")));
}

TEST(LeakScanTest, WhatMayHaveBeenFreedUnseenIsNotDefinitelyLost) {
  World world;
  world.Block(kA, 32, 0x900100).Block(kB, 32).Block(kC, 32);
  world.In(kA, kC);
  world.scan.Hint(ScanHint::kFreesUnseen, 0x900000, 0x910000);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kPossible) << "its stack passes through that module";
  EXPECT_EQ(world.KindOf(kC), kPossible) << "and what it leads to";
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_TRUE(scan.frees_unseen);
  EXPECT_THAT(scan.notes, testing::Contains(testing::HasSubstr("freed past the functions")));
}

// It may be unloaded by the time of the scan.
TEST(LeakScanTest, WhatWasOpenedWithDeepbindAllocatesAndFreesUnseen) {
  World world;
  world.trace.Module(7, 0, 0x900000, 0x910000, 0x900000, "/opt/plugins/deep.so");
  world.trace.Note("plugins/deep.so was opened with RTLD_DEEPBIND: what it allocates and frees by libc's malloc "
                   "is not in this trace");
  auto& main = world.trace.Thread(1, 4242, "main");
  main.At(500).Node(1, 0x401000).Node(2, 0x900100, 1, 7).Malloc(kA, 32, 2);
  world.Block(kB, 32).Block(kC, 32);
  world.In(World::kHeap + 0x8000, kC);
  EXPECT_TRUE(world.Check().frees_unseen);
  EXPECT_EQ(world.KindOf(kA), kPossible);
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_EQ(world.KindOf(kC), kReachable);
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

TEST(LeakScanTest, WhatWasNotScannedIsListed) {
  World world;
  world.Block(kA, 32);
  world.scan.Region(ScanRegionKind::kShared, ScanRegionUse::kNotScanned, 0x80000000, 0x80002000,
                    "/dev/dri/card0");
  world.scan.Thread(4243, 2, ScanThreadState::kUnparked, {});
  EXPECT_THAT(world.Check().notes,
              testing::UnorderedElementsAre(testing::HasSubstr("1 mapping, 8192 bytes: /dev/dri"),
                                            testing::HasSubstr("1 thread did not stop")));
}

TEST(LeakScanTest, ARangeLeavesOutScansAndBlocksOutside) {
  World world;
  world.Block(kA, 32);
  world.trace.Thread(1).At(500'000).Malloc(kB, 16);
  AnalyzeOptions options;
  options.range = {400'000, UINT64_MAX};
  const std::string bytes = world.Bytes();
  Analysis analysis = Analyze(bytes, options).analysis;
  ASSERT_EQ(analysis.leak_scans.size(), 1u);
  EXPECT_EQ(Total(analysis.leak_scans[0], kDefinite).bytes, 16u);
  options.range = {0, 900'000};
  EXPECT_TRUE(Analyze(bytes, options).analysis.leak_scans.empty());
}

TEST(LeakScanTest, WhatHangsOnALostBlockIsOfTheRangeToo) {
  World world;
  world.Block(kB, 48);
  world.trace.Thread(1).At(500'000).Malloc(kA, 16).Malloc(kC, 32);
  world.In(kA, kB).In(kA + 8, kC);
  AnalyzeOptions options;
  options.range = {400'000, UINT64_MAX};
  const Analysis analysis = Analyze(world.Bytes(), options).analysis;
  ASSERT_EQ(analysis.leak_scans.size(), 1u);
  EXPECT_EQ(Total(analysis.leak_scans[0], kIndirect).bytes, 32u);
  uint64_t hanging = 0;
  for (const LossRecord& record : analysis.leak_scans[0].records) hanging += record.indirect_bytes;
  EXPECT_EQ(hanging, 32u) << "and not the 48 bytes from before it";
}

TEST(LeakScanTest, AnyDamageIsSurvived) {
  World world;
  for (uint64_t i = 0; i < 20; ++i) world.Block(kA + 64 * i, 48).In(kA + 64 * i, kA + 64 * i + 64);
  world.Root(kA);
  world.scan.Raw(4, {1}).Raw(4, {77, 5, 5}).Raw(4, {1, 3}).Raw(5, {1, 2, 1}).Raw(3, {})
      .Raw(2, {1, 2, 3, 4, 5, 6, UINT64_MAX}).Raw(99, {1}).Raw(7, {1, UINT64_MAX, 0})
      .Raw(4, {1, UINT64_MAX - 7, kA, 1, 1, UINT64_MAX, UINT64_MAX});
  std::string payload = world.scan.payload();
  for (size_t cut = 0; cut < payload.size(); cut += 3) {
    TraceBuilder trace(World::Exact());
    trace.Thread(1, 4242, "main").At(1000).Malloc(kA, 48).Malloc(kB, 48);
    std::string changed = payload;
    changed[cut] = static_cast<char>(changed[cut] ^ 0x85);
    format::BlockHeader header{};
    header.kind = format::BlockKind::kMemoryScan;
    header.thread = 1;
    header.sequence = 1;
    trace.Block(header, std::string_view(changed).substr(0, cut % 2 == 0 ? cut : changed.size()));
    trace.End(0, 5'000'000);
    EXPECT_LE(Analyze(trace.Build()).analysis.leak_scans.size(), 1u);
  }
}

TEST(LeakScanTest, ThePackerPassesScansOn) {
  World world;
  for (uint64_t i = 0; i < 100; ++i) world.Block(kA + 64 * i, 48, 0x402000);
  world.In(kA, kA + 64).In(kA + 64, kA);
  const std::string raw = world.Bytes();
  char path[] = "/tmp/leak_scan_test.XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  unlink(path);
  MemorySource source(raw);
  Packer packer(&source, fd, path, {});
  ASSERT_TRUE(packer.Start().ok());
  ASSERT_TRUE(packer.Finish().ok());
  std::string packed(packer.bytes_written(), '\0');
  ASSERT_EQ(pread(fd, packed.data(), packed.size(), 0), static_cast<ssize_t>(packed.size()));
  close(fd);
  const Analysis before = Analyze(raw).analysis, after = Analyze(packed).analysis;
  ASSERT_EQ(after.leak_scans.size(), 1u);
  EXPECT_LT(packed.size(), raw.size());
  EXPECT_EQ(after.leak_scans[0].state, LeakScan::State::kDone);
  for (const LeakKind kind : {kDefinite, kIndirect, kReachable}) {
    EXPECT_EQ(Total(after.leak_scans[0], kind).blocks, Total(before.leak_scans[0], kind).blocks);
  }
  EXPECT_EQ(Total(after.leak_scans[0], kDefinite).blocks, 99u);
}

}  // namespace
}  // namespace memtrace::report
