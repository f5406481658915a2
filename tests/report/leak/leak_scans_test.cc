// The scans of a trace as a whole: their loss records, from one scan to the next; those that ended early or
// cannot know all; what was not scanned; ranges, damage and packing.

#include "report/leak/leak_scans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "report/analysis/coverage.h"
#include "report/trace/packer.h"
#include "tests/report/leak/leak_world.h"

namespace memtrace::report {
namespace {

using format::ScanHint;
using format::ScanReason;
using format::ScanRegionKind;
using format::ScanRegionUse;
using format::ScanShow;
using format::ScanThreadState;
using leak::LeakOptions;

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

// The status of a process that could write nothing of the scans `first` to `last`.
format::StatusArea ThatLost(uint32_t first, uint32_t last) {
  format::StatusArea area = {};
  area.lost_scans = {first, last, static_cast<uint32_t>(format::RecordingStop::kMaxBytes), 0};
  return area;
}

std::string Packed(const std::string& raw) {
  char path[] = "/tmp/leak_scan_test.XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_GE(fd, 0);
  unlink(path);
  MemorySource source(raw);
  Packer packer(&source, fd, path, {});
  EXPECT_TRUE(packer.Start().ok());
  EXPECT_TRUE(packer.Finish().ok());
  std::string packed(packer.bytes_written(), '\0');
  EXPECT_EQ(pread(fd, packed.data(), packed.size(), 0), static_cast<ssize_t>(packed.size()));
  close(fd);
  return packed;
}

constexpr char kRaiseTheLimit[] = "the size limit was reached (raise MEMTRACE_MAX_BYTES";

TEST(LeakScanTest, OfOneThatCouldNotBeWrittenTheTraceTellsWhy) {
  TraceBuilder trace(World::Exact());
  trace.Status(ThatLost(2, 2));
  trace.Thread(1, 4242, "main").At(1000).Malloc(kA, 32);
  ScanBuilder(1, trace.TicksAt(2000)).AddTo(&trace);
  ScanBuilder(2, trace.TicksAt(3000)).AddTo(&trace);
  trace.End(0, 5000);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  ASSERT_EQ(analysis.leak_scans.size(), 2u);
  EXPECT_THAT(analysis.leak_scans[0].failure, testing::HasSubstr("its process was killed"));
  EXPECT_EQ(analysis.leak_scans[1].state, LeakScan::State::kCutShort);
  EXPECT_THAT(analysis.leak_scans[1].failure, testing::HasSubstr(kRaiseTheLimit));
  EXPECT_EQ(leak::WhyNoScan(analysis), "scan 2: " + analysis.leak_scans[1].failure);
}

// As above, and of no scan there is a block.
TEST(LeakScanTest, OneOfWhichNothingWasWrittenIsToldOf) {
  for (const uint32_t first : {1, 3}) {
    TraceBuilder trace(World::Exact());
    trace.Status(ThatLost(first, 3));
    trace.Thread(1, 4242, "main").At(1000).Malloc(kA, 32);
    trace.End(0, 5000);
    std::string bytes = trace.Build();
    for (const bool packed : {false, true}) {
      SCOPED_TRACE(packed);
      if (packed) bytes = Packed(bytes);
      const Analysis analysis = Analyze(bytes).analysis;
      EXPECT_TRUE(analysis.leak_scans.empty());
      EXPECT_THAT(leak::WhyNoScan(analysis),
                  testing::StartsWith(std::string("scan 3 could not be written to the trace: ") +
                                      kRaiseTheLimit));
      ASSERT_EQ(analysis.coverage.notes.size(), 1u);
      EXPECT_THAT(analysis.coverage.notes[0].text,
                  testing::StartsWith(first == 3 ? "Memory scan 3 could not be written"
                                                 : "Memory scans 1 to 3, or some of them, could"));
      EXPECT_FALSE(AllRecorded(analysis.coverage));
      EXPECT_EQ(analysis.coverage.dropped_events, 0u);
    }
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

TraceBuilder::Options Forked() {
  TraceBuilder::Options options = World::Exact();
  options.file_flags = format::kFileForked;
  return options;
}

TEST(LeakScanTest, WhereBlocksAreUnknownTheHeapIsARoot) {
  World world(Forked());
  world.Block(kA, 32).Block(kB, 32);
  world.In(World::kHeap + 0x8000, kA);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
  EXPECT_EQ(world.KindOf(kB), kDefinite);
  EXPECT_THAT(scan.notes, testing::Contains(testing::HasSubstr("parent process")));
}

// A parent's block cannot be where the child has had one. With a realloc that leaves the block
// where it was, one that shrinks a block of the parent's, and a block that came after the scan.
TEST(LeakScanTest, WhereAForkChildHadABlockItselfTheHeapIsNoRoot) {
  World world(Forked());
  const uint64_t freed = World::kHeap + 0x8000, shrunk = World::kHeap + 0x9000,
                 parents = World::kHeap + 0xa000, later = World::kHeap + 0xb000;
  auto& main = world.trace.Thread(1, 4242, "main");
  main.At(500).Malloc(freed, 512).Free(freed).Malloc(shrunk, 512).Realloc(shrunk, shrunk, 16)
      .Realloc(parents, parents, 16);
  for (uint64_t i = 0; i < 5; ++i) world.Block(kA + 64 * i, 32);
  world.In(freed, kA).In(shrunk + 64, kA).In(freed + 512, kA + 64).In(shrunk - 8, kA + 128);
  world.In(parents + 64, kA + 192).In(later, kA + 256);
  main.At(World::kScanNs + 1000).Malloc(later, 64);
  const LeakScan& scan = world.Check();
  EXPECT_EQ(world.KindOf(kA), kDefinite);
  for (uint64_t i = 1; i < 5; ++i) EXPECT_EQ(world.KindOf(kA + 64 * i), kReachable) << i;
  EXPECT_EQ(world.KindOf(shrunk), kDefinite);
  EXPECT_THAT(scan.notes, testing::Contains(testing::AllOf(testing::HasSubstr("parent process"),
                                                           testing::HasSubstr("has never had"))));
}

// Free memory of the child's may hold blocks that it is not known to have allocated.
TEST(LeakScanTest, WhereMoreIsUnknownThanAParentsBlocksAllOfTheHeapIsARoot) {
  enum class Why { kUnseen, kLost, kDeepbind, kOlder, kNone };
  for (const Why why : {Why::kUnseen, Why::kLost, Why::kDeepbind, Why::kOlder, Why::kNone}) {
    SCOPED_TRACE(static_cast<int>(why));
    TraceBuilder::Options options = Forked();
    if (why == Why::kOlder) options.stamp_rule = format::StampRule::kUnknown;
    World world(options);
    const uint64_t freed = World::kHeap + 0x8000;
    auto& main = world.trace.Thread(1, 4242, "main");
    if (why == Why::kLost) main.Dropped(1);
    main.At(500).Malloc(freed, 512).Free(freed);
    world.Block(kA, 32).In(freed, kA);
    if (why == Why::kUnseen) world.scan.Hint(ScanHint::kAllocatesUnseen, 0x900000, 0x910000);
    if (why == Why::kDeepbind) {
      world.trace.Note("deep.so was opened with RTLD_DEEPBIND: what it allocates and frees by "
                       "libc's malloc is not in this trace");
    }
    const LeakScan& scan = world.Check();
    EXPECT_EQ(world.KindOf(kA), why == Why::kNone ? kDefinite : kReachable);
    if (why == Why::kNone) continue;
    EXPECT_THAT(scan.notes, testing::Contains(testing::HasSubstr("all of the heap outside of")));
  }
}

// What libc gave is no business of mappings that the program made where such a block had been.
TEST(LeakScanTest, WhereAForkChildHadAMappedBlockIsARootStill) {
  World world(Forked());
  const uint64_t mapped = World::kHeap + 0x100000;
  auto& main = world.trace.Thread(1, 4242, "main");
  main.At(500).Wide(format::AllocFunction::kMalloc, mapped, 1 << 18, 0, 0, 0, format::kWideMapped);
  main.Free(mapped);
  world.Block(kA, 32).In(mapped, kA);
  world.Check();
  EXPECT_EQ(world.KindOf(kA), kReachable);
}

TEST(LeakScanTest, OfAForkChildEachScanKnowsWhatWasAllocatedBefore) {
  TraceBuilder trace(Forked());
  const uint64_t later = World::kHeap + 0x8000;
  trace.Thread(1, 4242, "main").At(1000).Malloc(kA, 32).At(1'500'000).Malloc(later, 64).Free(later);
  for (uint32_t i = 1; i <= 2; ++i) {
    ScanBuilder scan(i, trace.TicksAt(i * 1'000'000));
    const uint32_t heap = scan.Region(ScanRegionKind::kHeap, ScanRegionUse::kTerritory,
                                      World::kHeap, World::kHeap + 0x1000000, "[heap]");
    scan.Word(heap, later, kA).Done().AddTo(&trace);
  }
  trace.End(0, 3'000'000);
  const std::string bytes = trace.Build();
  for (const std::string& each : {bytes, Packed(bytes)}) {
    const Analysis analysis = Analyze(each).analysis;
    ASSERT_EQ(analysis.leak_scans.size(), 2u);
    EXPECT_EQ(Total(analysis.leak_scans[0], kReachable).blocks, 1u);
    EXPECT_EQ(Total(analysis.leak_scans[1], kDefinite).blocks, 1u);
  }
}

// It is asked at each of the trace's blocks, behind the last event too.
TEST(LeakScanTest, OfAForkChildAnInterruptedReadingSaysSo) {
  World world(Forked());
  const uint64_t freed = World::kHeap + 0x8000;
  world.trace.Thread(1, 4242, "main").At(500).Malloc(freed, 512).Free(freed);
  world.Block(kA, 32).In(freed, kA);
  const std::string bytes = world.Bytes();
  AnalyzeOptions options;
  int asked = 0, all = 0;
  options.stop = [&] { return ++asked == all; };
  EXPECT_EQ(Total(Analyze(bytes, options).analysis.leak_scans.at(0), kDefinite).blocks, 1u);
  all = std::exchange(asked, 0);
  const Analysis part = Analyze(bytes, options).analysis;
  EXPECT_TRUE(part.coverage.interrupted);
  EXPECT_TRUE(InterruptedBehindTheEvents(part));
  EXPECT_EQ(Total(part.leak_scans.at(0), kReachable).blocks, 1u);
}

// Free chunks are linked by the addresses of their headers, of which each lies in the block before it.
TEST(LeakScanTest, WhereTheHeapIsARootChunkHeadersInItAreNoPointers) {
  for (const auto allocator : {format::AllocatorKind::kGlibc, format::AllocatorKind::kOther}) {
    TraceBuilder::Options options = Forked();
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

// The flag has no effect on it, and older libraries noted it all the same.
TEST(LeakScanTest, WhatWasLoadedAlreadyWasNotOpenedWithDeepbind) {
  for (const char* file : {"libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", "libdeep.so.1",
                           "/opt/plugins/libdeep.so.1"}) {
    World world;
    world.trace.Module(7, format::kModulePermanent, 0x900000, 0x910000, 0x900000,
                       "/lib/x86_64-linux-gnu/libc.so.6");
    world.trace.Module(8, format::kModulePermanent, 0xa00000, 0xa10000, 0xa00000,
                       "/opt/plugins/libdeep.so.1");
    world.trace.Note(std::string(file) +
                     " was opened with RTLD_DEEPBIND: what it allocates and frees by libc's malloc "
                     "is not in this trace");
    world.Block(kA, 32, 0x900100).Block(kB, 32, 0xa00100).Block(kC, 32);
    world.In(World::kHeap + 0x8000, kC);
    EXPECT_FALSE(world.Check().frees_unseen) << file;
    EXPECT_EQ(world.KindOf(kA), kDefinite) << file;
    EXPECT_EQ(world.KindOf(kB), kDefinite) << file;
    EXPECT_EQ(world.KindOf(kC), kDefinite) << file;
  }
}

// Another file of the same name was.
TEST(LeakScanTest, WhatWasOpenedWithDeepbindMayHaveTheNameOfWhatWasLoaded) {
  World world;
  world.trace.Module(7, format::kModulePermanent, 0x900000, 0x910000, 0x900000,
                     "/usr/lib/libdeep.so.1");
  world.trace.Note(
      "/opt/plugins/libdeep.so.1 was opened with RTLD_DEEPBIND: what it allocates and frees by "
      "libc's malloc is not in this trace");
  world.Block(kA, 32, 0x900100);
  EXPECT_TRUE(world.Check().frees_unseen);
  EXPECT_EQ(world.KindOf(kA), kDefinite)
      << "the one that was loaded is not the one that was opened";
}

TEST(LeakScanTest, WhatWasNotScannedIsListed) {
  World world;
  world.Block(kA, 32);
  world.scan.Region(ScanRegionKind::kShared, ScanRegionUse::kNotScanned, 0x80000000, 0x80002000,
                    "/dev/dri/card0");
  world.scan.Thread(4243, 2, ScanThreadState::kUnparked, {});
  EXPECT_THAT(world.Check().notes,
              testing::UnorderedElementsAre(testing::HasSubstr("1 mapping, 8,192 bytes: /dev/dri"),
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
  const std::string raw = world.Bytes(), packed = Packed(raw);
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
