// What a pass over a trace finds of mappings, and of the memory map that the kernel gave.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/analysis/analyzer.h"
#include "report/model/memory_map.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

TEST(MemoryMapTest, ReservedAndSharedMemoryIsNoGrowth) {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart, "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n");
  trace.Thread(1, 100, "main").At(1)
      .Mmap(0x7f0000000000, 0x40000000).Mmap(0x7f1000000000, 0x20000).Mmap(0x7f2000000000, 0x3000);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
                  "7f0000010000-7f0040000000 ---p 00000000 00:00 0 \n"
                  "7f1000000000-7f1000020000 rw-s 00000000 00:01 99 /dev/zero (deleted)\n"
                  "7f2000000000-7f2000003000 rw-p 00000000 00:00 0 \n", 2);
  trace.End(0, 3);
  const MemoryMapSummary map = Analyze(trace.Build()).analysis.memory_map;
  EXPECT_EQ(map.program_mmap_bytes, 0x13000u);
  EXPECT_EQ(map.program_other_mmap_bytes, 0x40000000u - 0x10000 + 0x20000);
  EXPECT_EQ(map.unexplained_bytes, 0);
}

// As with a jemalloc: its reservation begins the recording, so that the map of the start has it.
TEST(MemoryMapTest, WhatBeganTheRecordingIsAtTheStartOnlyWhereItIsWritable) {
  constexpr uint64_t kReserved = 0x7f0000000000, kWritable = 0x7f0000010000;
  const auto summary = [&](uint64_t address, uint64_t bytes, const char* at_start,
                           const char* at_end) {
    TraceBuilder trace;
    trace.MemoryMap(format::MapReason::kStart, at_start);
    trace.Thread(1, 100, "main").At(1).Mmap(address, bytes);
    trace.MemoryMap(format::MapReason::kEnd, at_end, 2);
    trace.End(0, 3);
    return Analyze(trace.Build()).analysis.memory_map;
  };
  const char* const as_it_was =
      "7f0000000000-7f0000010000 ---p 00000000 00:00 0 \n"
      "7f0000010000-7f0000014000 rw-p 00000000 00:00 0 \n";
  EXPECT_EQ(summary(kReserved, 0x10000, as_it_was, as_it_was).unexplained_bytes, 0);
  EXPECT_EQ(summary(kReserved, 0x14000, as_it_was, as_it_was).unexplained_bytes, 0);
  EXPECT_EQ(summary(kWritable, 0x4000, as_it_was, as_it_was).unexplained_bytes, 0);
  EXPECT_EQ(summary(kWritable, 0x4000, as_it_was, as_it_was).program_mmap_at_start_bytes, 0x4000u);
  EXPECT_EQ(summary(kReserved, 0x10000, "7f0000000000-7f0000010000 ---p 00000000 00:00 0 \n",
                    "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n")
                .unexplained_bytes,
            0)
      << "written to since";
}

TEST(MemoryMapTest, GrowthIsOfWholePages) {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart,
                  "00500000-00501000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000003000 rw-p 00000000 00:00 0 \n", 0, 0x1800);
  trace.Thread(1, 100, "main").At(1)
      .Brk(0x501000, 0x501064).Mmap(0x7f1000000000, 5000)
      .Mremap(0x7f1000000000, 5000, 0x7f2000000000, 9000);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00500000-00502000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000004000 rw-p 00000000 00:00 0 \n"
                  "7f2000000000-7f2000003000 rw-p 00000000 00:00 0 \n", 2, 0x2048);
  trace.End(0, 3);
  const MemoryMapSummary map = Analyze(trace.Build()).analysis.memory_map;
  EXPECT_EQ(map.program_mmap_bytes, 0x3000u);
  EXPECT_EQ(map.tool_bytes, 0x3000u);
  EXPECT_EQ(map.anonymous_bytes, 0x4000u);
  EXPECT_EQ(map.unexplained_bytes, 0);
}

// As rust-lld has them: stacks of 64 MiB, one of them where a heap of an arena could begin.
TEST(MemoryMapTest, AStackMayBeginWhereAHeapOfAnArenaCould) {
  const auto stacks = [](const char* map) { return SumUpMap(map).thread_stack_bytes; };
  EXPECT_EQ(stacks("7fd4a8000000-7fd4a8021000 rw-p 00000000 00:00 0 \n"   // a heap
                   "7fd4a8021000-7fd4ac000000 ---p 00000000 00:00 0 \n"
                   "7fd4affff000-7fd4b0000000 ---p 00000000 00:00 0 \n"
                   "7fd4b0000000-7fd4b4000000 rw-p 00000000 00:00 0 \n"   // a stack
                   "7fd4b4000000-7fd4b417b000 rw-p 00000000 00:00 0 \n"   // a heap
                   "7fd4b417b000-7fd4b8000000 ---p 00000000 00:00 0 \n"
                   "7fd4b8000000-7fd4b8113000 rw-p 00000000 00:00 0 \n"   // a heap
                   "7fd4b8113000-7fd4bc000000 ---p 00000000 00:00 0 \n"
                   "7fd4bc027000-7fd4bc028000 ---p 00000000 00:00 0 \n"
                   "7fd4bc028000-7fd4c0028000 rw-p 00000000 00:00 0 \n"),  // a stack
            uint64_t{128} << 20);
  EXPECT_EQ(stacks("7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
                   "7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n"
                   "7f0004000000-7f0008000000 rw-p 00000000 00:00 0 \n"), 0u)
      << "a heap that is used up, behind what another has not used";
  EXPECT_EQ(stacks("7f0002000000-7f0004000000 ---p 00000000 00:00 0 \n"
                   "7f0004000000-7f0004021000 rw-p 00000000 00:00 0 \n"
                   "7f0004021000-7f0008000000 ---p 00000000 00:00 0 \n"), 0u)
      << "a heap behind address space that somebody reserved";
}

TEST(AnalyzerTest, MappingsAreFollowedThroughPartialUnmapsAndMoves) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).Node(1, 0x401000).Node(2, 0x402000).Node(3, 0x403000);
  t.Mmap(0x100000, 0x10000, 1).Munmap(0x104000, 0x4000);           // a hole of 16 KiB
  t.Mmap(0x200000, 0x8000, 2, "/etc/some file");
  t.Munmap(0x200000, 0x8000).MunmapFailed(0x200000, 0x8000);       // taken back
  t.Mremap(0x108000, 0x8000, 0x300000, 0x20000, 3);                // grows by 96 KiB
  t.Brk(0x500000, 0x520000, 1).Brk(0x520000, 0x510000, 1);
  t.ArenaGrowth(0x7f0000000000, 0x21000, 2).ArenaGrowth(0x7f0000000000, 0x42000, 3);
  t.Shmat(0x600000, 0x1000, 5, 2).Shmdt(0x600000).MunmapFailed(0x600000, 0).Shmdt(0x600000);
  t.Shmat(0x700000, 0x3000, 6, 3).Shmdt(0x700000).MunmapFailed(0x700000, 0).At(2);  // taken back
  const AnalyzedTrace trace_ = Analyze(trace.Build());
  const auto find = [&](MappingSite::Kind kind, uint64_t pc) {
    for (const MappingSite& site : trace_.analysis.mappings) {
      if (site.kind == kind && trace_.stacks->node(site.stack).pc == pc) return site;
    }
    ADD_FAILURE() << "no such mapping";
    return MappingSite();
  };
  using Kind = MappingSite::Kind;
  EXPECT_EQ(find(Kind::kShm, 0x403000).live_bytes, 0x3000u);
  EXPECT_EQ(find(Kind::kMmap, 0x401000).live_bytes, 0xc000u) << "moved, but still its";
  EXPECT_EQ(find(Kind::kMmap, 0x401000).bytes, 0x10000u);
  EXPECT_EQ(find(Kind::kMmap, 0x402000).live_bytes, 0x8000u);
  EXPECT_EQ(find(Kind::kMmap, 0x402000).file, "/etc/some file");
  EXPECT_EQ(find(Kind::kMmap, 0x403000).live_bytes, 0x18000u);
  EXPECT_EQ(find(Kind::kBrk, 0x401000).live_bytes, 0x10000u);
  EXPECT_EQ(find(Kind::kBrk, 0x401000).calls, 1u);
  EXPECT_EQ(find(Kind::kArenaGrowth, 0x402000).live_bytes, 0x21000u);
  EXPECT_EQ(find(Kind::kArenaGrowth, 0x403000).live_bytes, 0x21000u);
  EXPECT_EQ(find(Kind::kShm, 0x402000).live_bytes, 0u);
  EXPECT_EQ(trace_.analysis.memory_map.program_mmap_bytes, 0xc000u + 0x18000);
  EXPECT_EQ(trace_.analysis.memory_map.heap_growth_seen_bytes, 0x10000u);
}

// The kernel gives the old range to the next who maps, while the mremap is not told yet.
TEST(AnalyzerTest, WhatAnotherMapsWhereAMappingWasMovedFromStays) {
  TraceBuilder trace;
  auto& mover = trace.Thread(1, 100, "mover");
  auto& mapper = trace.Thread(2, 101, "mapper");
  mover.At(1).Node(1, 0x401000).Node(2, 0x402000);
  mapper.At(1).Node(1, 0x403000);
  mover.Mmap(0x100000, 0x10000, 1).Mmap(0x200000, 0x8000, 1).Mmap(0x400000, 0x1000, 1);
  mover.At(2).Munmap(0x100000, 0x10000, 2);
  mapper.At(3).Mmap(0x100000, 0x10000, 1);
  mover.At(4).Mremap(0x100000, 0x10000, 0x300000, 0x14000, 2, 1, /*told=*/true);
  mover.At(5).Munmap(0x200000, 0x8000, 2);
  mapper.At(6).Mmap(0x204000, 0x4000, 1);
  mover.At(7).Mremap(0x200000, 0x8000, 0x200000, 0x4000, 2, 0, /*told=*/true);  // shrinks
  mover.At(8).Munmap(0x400000, 0x1000, 2).MunmapFailed(0x400000, 0x1000);  // could not grow
  const AnalyzedTrace trace_ = Analyze(trace.Build());
  uint64_t live = 0;
  for (const MappingSite& site : trace_.analysis.mappings) {
    const uint64_t pc = trace_.stacks->node(site.stack).pc;
    EXPECT_EQ(site.live_bytes, pc == 0x401000 ? 0x15000u : pc == 0x402000 ? 0x4000u : 0x14000u);
    EXPECT_EQ(site.calls, pc == 0x401000 ? 3u : pc == 0x402000 ? 1u : 2u);
    live += site.live_bytes;
  }
  EXPECT_EQ(live, 0x2d000u);
}

// An mremap without a munmap of its own, as of older traces, takes what is there by then.
TEST(AnalyzerTest, AMoveThatWasNotToldBeforeTakesWhatIsThere) {
  TraceBuilder trace;
  auto& mover = trace.Thread(1, 100, "mover");
  mover.At(1).Node(1, 0x401000).Node(2, 0x402000).Node(3, 0x403000);
  mover.Mmap(0x100000, 0x4000, 1).Munmap(0x100000, 0x4000).Mmap(0x100000, 0x4000, 2);
  mover.At(2).Mremap(0x100000, 0x4000, 0x300000, 0x4000, 3).At(3);
  const AnalyzedTrace trace_ = Analyze(trace.Build());
  ASSERT_EQ(trace_.analysis.mappings.size(), 2u);
  for (const MappingSite& site : trace_.analysis.mappings) {
    const bool moved = trace_.stacks->node(site.stack).pc == 0x402000;
    EXPECT_EQ(site.live_bytes, moved ? 0x4000u : 0u);
  }
}

TEST(AnalyzerTest, AMoveMayLeaveTheOldMappingWhereItWas) {
  constexpr uint32_t kMayMove = 1, kDontUnmap = 4;
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).Node(1, 0x401000).Node(2, 0x402000);
  t.Mmap(0x100000, 0x10000, 1).Mremap(0x100000, 0x10000, 0x300000, 0x10000, 2, kMayMove | kDontUnmap);
  t.Mremap(0x100000, 0, 0x500000, 0x4000, 2, kMayMove).At(2);  // a second mapping of its pages
  t.Munmap(0x100000, 0x8000).At(3);
  const Analysis a = Analyze(trace.Build()).analysis;
  ASSERT_EQ(a.mappings.size(), 2u);
  for (const MappingSite& site : a.mappings) {
    EXPECT_EQ(site.live_bytes, site.calls == 1 ? 0x8000u : 0x14000u);
  }
  EXPECT_EQ(a.memory_map.program_mmap_bytes, 0x1c000u);
}

TEST(AnalyzerTest, ExplainsTheMemoryMap) {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart,
                  "00400000-00401000 r-xp 00000000 08:01 1234 /usr/bin/app\n"
                  "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
                  "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n");
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).HeapGrowth(0x521000, 0x542000).Mmap(0x7f1000000000, 0x30000);
  t.Wide(format::AllocFunction::kMalloc, 0x7f2000000010, 0x1fff0 - 0x100, 0x1fff0, 0, 0,
         format::kWideMapped);
  t.At(2);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00400000-00401000 r-xp 00000000 08:01 1234 /usr/bin/app\n"
                  "00500000-00542000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
                  "7f1000000000-7f1000030000 rw-p 00000000 00:00 0 \n"
                  "7f2000000000-7f2000020000 rw-p 00000000 00:00 0 \n"
                  "7f3000000000-7f3000001000 ---p 00000000 00:00 0 \n"
                  "7f3000001000-7f3000801000 rw-p 00000000 00:00 0 \n"
                  "7f4000000000-7f4000005000 rw-p 00000000 00:00 0 \n"
                  "7f5000000000-7f5000010000 rw-s 00010000 08:01 99 /tmp/app.mtr\n"
                  "nonsense\n", 2);
  trace.End(0, 3);
  const MemoryMapSummary map = Analyze(trace.Build()).analysis.memory_map;
  EXPECT_TRUE(map.known);
  EXPECT_EQ(map.heap_at_start_bytes, 0x21000u);
  EXPECT_EQ(map.heap_bytes, 0x42000u);
  EXPECT_EQ(map.heap_growth_seen_bytes, 0x21000u);
  EXPECT_EQ(map.anonymous_at_start_bytes, 0x10000u);
  EXPECT_EQ(map.thread_stack_bytes, 0x800000u);
  EXPECT_EQ(map.mapped_blocks_bytes, 0x20000u);
  EXPECT_EQ(map.program_mmap_bytes, 0x30000u);
  EXPECT_EQ(map.tool_bytes, 0x10000u);
  EXPECT_EQ(map.unexplained_bytes, 0x5000);
}

// Of some of the blocks all others would be growth that no event explains. What was resident is the
// process's, whatever blocks are asked for.
TEST(AnalyzerTest, OfSomeBlocksTheMemoryMapIsNotToldButThePeakOfThePagesIs) {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart, "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n");
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).Node(1, 0x401000);
  t.Wide(format::AllocFunction::kMalloc, 0x7f2000000010, 0x1ff00, 0x1fff0, 1, 0,
         format::kWideMapped);
  t.At(2);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f2000000000-7f2000020000 rw-p 00000000 00:00 0 \n", 2);
  trace.End(0, 3);
  const std::string bytes = trace.Build();
  const Analysis whole = Analyze(bytes).analysis;
  EXPECT_TRUE(whole.memory_map.known);
  EXPECT_EQ(whole.memory_map.unexplained_bytes, 0);
  EXPECT_EQ(whole.faults.peak_rss_bytes, uint64_t{5} << 20) << "as the end says";
  std::vector<AnalyzeOptions> some(5);
  some[0].thread_name = "main";
  some[1].filter.sizes = {0, 64};
  some[2].filter.sites = [](StackId) { return true; };
  some[3].filter.ages = {1, UINT64_MAX};
  some[4].filter.lifetimes = {1, UINT64_MAX};
  for (const AnalyzeOptions& options : some) {
    const Analysis part = Analyze(bytes, options).analysis;
    EXPECT_FALSE(part.memory_map.known);
    EXPECT_EQ(part.faults.peak_rss_bytes, uint64_t{5} << 20);
  }
}

}  // namespace
}  // namespace memtrace::report
