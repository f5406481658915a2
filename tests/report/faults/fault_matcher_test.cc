// Fault events are matched to the blocks, mappings and modules of their time.

#include "report/findings/fault_details.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "format/faults.h"
#include "format/record_encoder.h"
#include "format/varint.h"
#include "report/analysis/analyzer.h"
#include "report/faults/fault_stream.h"
#include "report/model/timeline.h"
#include "report/trace/trace_reader.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::FaultTag;

constexpr uint64_t kStart = TraceBuilder::kStartNs;
constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kTid = 4242;

// The records of one kFaults block.
class FaultScript {
 public:
  FaultScript& Source(format::FaultSource source, uint64_t minor_before, std::string_view why = "") {
    Begin(FaultTag::kSource);
    for (uint64_t n : {static_cast<uint64_t>(source), kStart, minor_before, uint64_t{0}, uint64_t{0}}) {
      out_.Number(n);
    }
    out_.Bytes(why);
    for (uint64_t n : {uint64_t{2}, uint64_t{131072}, uint64_t{500}}) out_.Number(n);
    out_.End();
    return *this;
  }
  // `ns`: when they were missed, at the latest; 0: it was not told.
  FaultScript& Lost(uint64_t faults, uint64_t ns = kStart) {
    Begin(FaultTag::kLost);
    out_.Number(faults);
    out_.Number(ns);
    out_.End();
    return *this;
  }
  FaultScript& Usage(uint64_t minor, uint64_t major) {
    Begin(FaultTag::kUsage);
    for (uint64_t n : {kStart, minor, major}) out_.Number(n);
    out_.End();
    return *this;
  }
  FaultScript& OwnMemory(uint64_t time_ns, uint64_t begin, uint64_t end, bool came) {
    Begin(FaultTag::kOwnMemory);
    for (uint64_t n : {kStart + time_ns, begin, end, uint64_t{came}}) out_.Number(n);
    out_.End();
    return *this;
  }
  FaultScript& Turn(std::initializer_list<Fault> faults, uint64_t until_ns) {
    Begin(FaultTag::kFaults);
    out_.Number(until_ns == 0 ? 0 : kStart + until_ns);
    Fault before;
    uint64_t ns = 0;
    for (const Fault& fault : faults) {
      out_.Number(format::ZigZag(kStart + fault.time_ns - ns) << 2 | (fault.major ? 1 : 0) |
                  (fault.in_kernel ? 2 : 0));
      out_.Number(format::ZigZag(uint64_t{fault.tid} - before.tid));
      out_.Number(format::ZigZag(fault.address - before.address));
      out_.Number(format::ZigZag(fault.pc - before.pc));
      ns = kStart + fault.time_ns;
      before = fault;
    }
    out_.End();
    return *this;
  }
  void AddTo(TraceBuilder* trace, uint32_t sequence) {
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kFaults;
    header.sequence = sequence;
    trace->Block(header, {reinterpret_cast<const char*>(out_.data()), out_.size()});
    out_.Clear();
  }

 private:
  void Begin(FaultTag tag) { out_.Begin(static_cast<format::RecordTag>(tag)); }

  uint8_t buffer_[4096];
  format::RecordEncoder out_{buffer_, sizeof(buffer_)};
};

Fault At(uint64_t time_ns, uint64_t address, uint64_t pc = 0x402010) {
  return {.time_ns = time_ns, .address = address, .pc = pc, .tid = kTid};
}

constexpr char kMap[] =
    "00400000-00401000 r--p 00000000 08:01 11 /a\n"
    "00401000-00403000 r-xp 00001000 08:01 11 /a\n"
    "00403000-00404000 rw-p 00003000 08:01 11 /a\n"
    "00404000-00406000 rw-p 00000000 00:00 0 \n"
    "00800000-00900000 rw-p 00000000 00:00 0 [heap]\n"
    "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
    "7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n"
    "7ffd00000000-7ffd00100000 rw-p 00000000 00:00 0 [stack]\n";

class FaultMatcherTest : public ::testing::Test {
 protected:
  explicit FaultMatcherTest(const TraceBuilder::Options& options = {}) : trace_(options) {
    trace_.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x404800,
                  0x400000, "/a");
    trace_.Module(2, format::kModulePermanent | format::kModuleTracer, 0x500000, 0x510000,
                  0x500000, "/libmemtrace.so");
    trace_.MemoryMap(format::MapReason::kStart, kMap);
  }

  FaultDetails Details() {
    trace_.End(0, 100 * kMs);
    analyzed_ = Analyze(trace_.Build());
    return analyzed_.analysis.fault_details;
  }
  const FaultSums& Of(const FaultDetails& details, MemoryKind kind) {
    return details.by_kind[static_cast<size_t>(kind)];
  }

  TraceBuilder trace_;
  FaultScript faults_;
  AnalyzedTrace analyzed_;
};

TEST_F(FaultMatcherTest, FaultsBelongToTheBlockThatIsLiveThen) {
  auto& main = trace_.Thread(1, kTid, "main");
  main.At(1 * kMs).Node(1, 0x401100).Malloc(0x810000, 0x4000, 1, 8);
  main.At(2 * kMs).Node(2, 0x401200).Malloc(0x820000, 100, 2, 4);
  main.At(5 * kMs).Free(0x810000);
  main.At(7 * kMs).Node(3, 0x401300).Malloc(0x810000, 0x4000, 3, 8);
  main.At(9 * kMs).Free(0x820000);
  faults_.Source(format::FaultSource::kAllEvents, 50)
      .Turn({At(3 * kMs, 0x812345), At(8 * kMs, 0x813000), At(4 * kMs, 0x820040)}, 10 * kMs)
      .Usage(53, 0)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  EXPECT_TRUE(details.known);
  EXPECT_EQ(details.before.minor, 50u);
  EXPECT_EQ(details.told.minor, 3u);
  EXPECT_EQ(Of(details, MemoryKind::kBlock).minor, 3u);
  ASSERT_EQ(details.sites.size(), 3u);
  for (const FaultSite& site : details.sites) {
    EXPECT_EQ(site.faults.minor, 1u);
    ASSERT_EQ(site.touchers.size(), 1u);
    EXPECT_EQ(analyzed_.stacks->node(site.touchers[0].code).pc, 0x402011u);
  }
}

// Of large blocks it is kept where they lie: one comes where one was before, and once more where a
// fault has meanwhile found that one gone.
TEST_F(FaultMatcherTest, ALargeBlockIsFoundWhereOthersWereBefore) {
  auto& main = trace_.Thread(1, kTid, "main");
  main.At(1 * kMs).Node(1, 0x401100).Malloc(0x810010, 0x4000, 1, 8).At(2 * kMs).Free(0x810010);
  main.At(3 * kMs).Node(2, 0x401200).Malloc(0x810010, 0x4000, 2, 8).At(5 * kMs).Free(0x810010);
  main.At(7 * kMs).Node(3, 0x401300).Malloc(0x810010, 0x4000, 3, 8);
  faults_.Source(format::FaultSource::kAllEvents, 0)
      .Turn({At(4 * kMs, 0x812345), At(6 * kMs, 0x812345), At(8 * kMs, 0x813000)}, 10 * kMs)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  EXPECT_EQ(Of(details, MemoryKind::kBlock).minor, 3u);
  ASSERT_EQ(details.sites.size(), 2u);
  for (const FaultSite& site : details.sites) {
    const bool second = analyzed_.stacks->node(site.stack).pc == 0x401200;
    EXPECT_EQ(site.faults.minor, second ? 1u : 2u);
    EXPECT_EQ(site.by_allocator, second ? 0u : 1u);
  }
}

TEST_F(FaultMatcherTest, APageThatTheAllocatorBringsInIsForTheBlockThatComesToLieThere) {
  auto& main = trace_.Thread(1, kTid, "main");
  main.At(1 * kMs).Node(1, 0x401100).Malloc(0x810010, 100, 1, 4);
  main.At(5 * kMs).Node(2, 0x401200).Calloc(0x811010, 0x8000, 2, 8);
  faults_.Source(format::FaultSource::kAllEvents, 0)
      // The header of what is free, the clearing of calloc, and memory that stays free.
      .Turn({At(2 * kMs, 0x811008), At(3 * kMs, 0x813000), At(4 * kMs, 0x880000)}, 10 * kMs)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  ASSERT_EQ(details.sites.size(), 1u);
  EXPECT_EQ(details.sites[0].faults.minor, 2u);
  EXPECT_EQ(details.sites[0].by_allocator, 2u);
  EXPECT_EQ(Of(details, MemoryKind::kAllocator).minor, 1u);
}

// glibc writes the size of what is left behind each block that it cuts off.
TEST_F(FaultMatcherTest, APageIsForTheBlockThatHasMostOfIt) {
  auto& main = trace_.Thread(1, kTid, "main");
  main.At(5 * kMs).Node(1, 0x401100).Node(2, 0x401200);
  main.Malloc(0x811010, 40, 1, 0).Malloc(0x811040, 4000, 2, 8);   // most is of the second
  main.Malloc(0x813010, 900, 1, 4).Malloc(0x8133a0, 40, 2, 0);    // the page ends with neither
  faults_.Source(format::FaultSource::kAllEvents, 0)
      .Turn({At(2 * kMs, 0x811008), At(3 * kMs, 0x813008)}, 10 * kMs)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  ASSERT_EQ(details.sites.size(), 2u);
  EXPECT_EQ(Of(details, MemoryKind::kBlock).minor, 2u);
  for (const FaultSite& site : details.sites) {
    EXPECT_EQ(site.faults.minor, 1u);
    EXPECT_EQ(site.by_allocator, 1u);
    EXPECT_EQ(site.first_time_ns, (analyzed_.stacks->node(site.stack).pc == 0x401100 ? 3 : 2) * kMs);
  }
}

class LargePagesTest : public FaultMatcherTest {
 protected:
  LargePagesTest() : FaultMatcherTest({.page_bytes = 16384}) {}
};

// The second block fills what would be its page of 4096 bytes.
TEST_F(LargePagesTest, APageIsAsLargeAsTheMachineHasThem) {
  auto& main = trace_.Thread(1, kTid, "main");
  main.At(5 * kMs).Node(1, 0x401100).Node(2, 0x401200).Node(3, 0x401300);
  main.Malloc(0x811010, 40, 1, 0).Malloc(0x811040, 4000, 2, 8).Malloc(0x812000, 8100, 3, 8);
  faults_.Source(format::FaultSource::kAllEvents, 0)
      .Turn({At(2 * kMs, 0x811008)}, 10 * kMs)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  ASSERT_EQ(details.sites.size(), 1u);
  EXPECT_EQ(analyzed_.stacks->node(details.sites[0].stack).pc, 0x401300u);
}

// Touched by libc's memcpy and by system calls of the library: not for the block that comes next.
TEST_F(FaultMatcherTest, MemoryOfTheLibraryIsItsForAsLongAsItHasIt) {
  trace_.Thread(1, kTid, "main").At(5 * kMs).Node(1, 0x401100).Calloc(0x811010, 0x8000, 1, 8);
  faults_.Source(format::FaultSource::kAllEvents, 0)
      .OwnMemory(4 * kMs, 0x811000, 0x819000, false)
      .OwnMemory(1 * kMs, 0x811000, 0x819000, true)
      .Turn({At(2 * kMs, 0x812000), {.time_ns = 3 * kMs, .address = 0x813000, .tid = kTid, .in_kernel = true},
             At(6 * kMs, 0x812000), At(7 * kMs, 0x814000)}, 10 * kMs)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  EXPECT_EQ(Of(details, MemoryKind::kTool).minor, 2u);
  ASSERT_EQ(details.sites.size(), 1u);
  EXPECT_EQ(details.sites[0].faults.minor, 2u);
  EXPECT_EQ(details.sites[0].by_allocator, 0u);
}

TEST_F(FaultMatcherTest, OtherMemoryIsNamedByMapsAndModules) {
  auto& main = trace_.Thread(1, kTid, "main");
  main.At(1 * kMs).Node(1, 0x401100).Mmap(0x7e0000000000, 0x10000, 1);
  main.At(20 * kMs).Munmap(0x7e0000000000, 0x10000);
  faults_.Source(format::FaultSource::kAllEvents, 0)
      .Turn({At(2 * kMs, 0x401000), At(2 * kMs, 0x400010), At(2 * kMs, 0x403010),
             At(2 * kMs, 0x404010), At(2 * kMs, 0x7f0000002000), At(2 * kMs, 0x7ffd00001000),
             At(2 * kMs, 0x7e0000001000), At(2 * kMs, 0x123456789000),
             At(2 * kMs, 0x8f0000, 0x500010)},
            30 * kMs)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  EXPECT_EQ(Of(details, MemoryKind::kText).minor, 1u);
  EXPECT_EQ(Of(details, MemoryKind::kReadOnly).minor, 1u);
  EXPECT_EQ(Of(details, MemoryKind::kData).minor, 1u);
  EXPECT_EQ(Of(details, MemoryKind::kBss).minor, 1u);
  EXPECT_EQ(Of(details, MemoryKind::kStack).minor, 2u);
  EXPECT_EQ(Of(details, MemoryKind::kProgramMap).minor, 1u);
  EXPECT_EQ(Of(details, MemoryKind::kUnknown).minor, 1u);
  EXPECT_EQ(Of(details, MemoryKind::kTool).minor, 1u);
  ASSERT_EQ(details.mappings.size(), 1u);
  EXPECT_EQ(details.told.minor, 9u);
}

TEST_F(FaultMatcherTest, WhatIsNotToldIsCounted) {
  trace_.Thread(1, kTid, "main").At(1 * kMs).Node(1, 0x401100).Malloc(0x810000, 0x4000, 1, 8);
  faults_.Source(format::FaultSource::kUserEvents, 100)
      .Turn({At(2 * kMs, 0x811000)}, 10 * kMs)
      .Lost(30)
      .Usage(150, 4)
      .AddTo(&trace_, 1);
  const FaultDetails details = Details();
  EXPECT_EQ(details.lost, 30u);
  EXPECT_EQ(details.last_lost_ns, 0u);
  // getrusage at the end (TraceBuilder::End) or at the last turn, the larger.
  EXPECT_EQ(details.before.minor + details.told.minor + details.lost + details.not_told.minor,
            std::max<uint64_t>(150, 300));
}

// Counts are of the samples' times, what was seen has its own.
TEST_F(FaultMatcherTest, OfARangeNoMoreIsSeenThanCounted) {
  auto& main = trace_.Thread(1, kTid, "main");
  for (const uint64_t ms : {1, 4, 9}) main.At(ms * kMs).Usage(60, 0, 4096).At(ms * kMs);
  faults_.Source(format::FaultSource::kAllEvents, 59)
      .OwnMemory(1 * kMs, 0x811000, 0x819000, true)
      .Turn({At(2 * kMs, 0x812000), At(3 * kMs, 0x880000), At(4 * kMs, 0x881000),
             At(8 * kMs, 0x882000)}, 10 * kMs)
      .AddTo(&trace_, 1);
  const Analysis first = Analyze(trace_.Build(), RangeOf(0, 5 * kMs)).analysis;
  EXPECT_EQ(first.fault_details.before.minor, 59u);
  EXPECT_EQ(first.fault_details.told.minor, 3u);
  EXPECT_EQ(first.faults.tool_minor, 1u);
  EXPECT_EQ(first.faults.minor, 61u);
  const Analysis later = Analyze(trace_.Build(), RangeOf(3 * kMs / 2, 5 * kMs)).analysis;
  EXPECT_EQ(later.fault_details.before.minor, 0u);
  EXPECT_EQ(later.faults.tool_minor, 1u);
  EXPECT_EQ(later.faults.minor, 2u);
}

TEST_F(FaultMatcherTest, UntilWhenSomeWereLostIsKnown) {
  faults_.Source(format::FaultSource::kUserEvents, 100)
      .Turn({At(2 * kMs, 0x811000)}, 10 * kMs)
      .Lost(30, kStart + 5 * kMs)
      .Lost(1, kStart + 3 * kMs)
      .AddTo(&trace_, 1);
  EXPECT_EQ(Details().last_lost_ns, 5 * kMs);
  faults_.Lost(2, 0).AddTo(&trace_, 2);
  EXPECT_EQ(Details().last_lost_ns, UINT64_MAX);
}

// Within a turn, and over blocks, they come in any order.
TEST_F(FaultMatcherTest, TheStreamIsInTheOrderOfTime) {
  faults_.Source(format::FaultSource::kAllEvents, 0)
      .Turn({At(5 * kMs, 5), At(1 * kMs, 1), At(3 * kMs, 3)}, 0)
      .AddTo(&trace_, 1);
  faults_.Turn({At(2 * kMs, 2)}, 5 * kMs).AddTo(&trace_, 2);
  // One that was under way at the end of the turn.
  faults_.Turn({At(7 * kMs, 7), At(6 * kMs, 6)}, 8 * kMs).AddTo(&trace_, 3);
  const std::string bytes = trace_.Build();
  auto reader = Read(bytes);
  ASSERT_TRUE(reader.ok());
  std::vector<uint64_t> addresses;
  for (FaultStream stream(reader->get()); !stream.done(); stream.Pop()) {
    addresses.push_back(stream.front().address);
  }
  EXPECT_EQ(addresses, (std::vector<uint64_t>{1, 2, 3, 5, 6, 7}));
}

// Samples say how many there were, single faults when.
TEST(FaultMarksTest, ShareOutWhatLiesBetweenTwoSamples) {
  std::vector<UsageSample> samples(2);
  samples[0].minor_faults = 100;
  samples[1] = {.time_ns = 1000, .minor_faults = 300, .major_faults = 2};
  EXPECT_EQ(FaultsAt(samples, {}, 500).minor, 200) << "none is known";
  FaultMarks marks;
  for (uint64_t i = 0; i < 100; ++i) marks.Add(600 + i, false);
  marks.Add(900, true);
  const auto minor = [&](uint64_t ns) { return FaultsAt(samples, marks.All(), ns).minor; };
  EXPECT_EQ(minor(0), 100);
  EXPECT_EQ(minor(599), 100);
  EXPECT_NEAR(minor(649), 200, 2.1);  // half of them, each of which stands for two
  EXPECT_EQ(minor(700), 300);
  EXPECT_EQ(minor(1000), 300);
  EXPECT_NEAR(FaultsAt(samples, marks.All(), 899).major, 2, 0.02) << "since the mark before";
  // However many there are.
  FaultMarks many;
  for (uint64_t i = 0; i < 1'000'000; ++i) many.Add(i / 1000, false);
  EXPECT_LE(many.All().size(), FaultMarks::kMost);
  EXPECT_EQ(many.All().back().minor, 1'000'000u);
  EXPECT_NEAR(FaultsAt(samples, many.All(), 250).minor, 150, 1);
}

TEST_F(FaultMatcherTest, GarbageIsNoTrouble) {
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kFaults;
  header.sequence = 1;
  for (const std::string_view payload :
       {std::string_view("\x02\xff\xff\xff\xff\x0f", 6), std::string_view("\x02\x05\xff\xff\xff\xff\xff", 7),
        std::string_view("\x01\x00", 2), std::string_view("\x63\x01\x00", 3)}) {
    trace_.Block(header, payload);
  }
  const FaultDetails details = Details();
  EXPECT_EQ(details.sites.size(), 0u);
}

}  // namespace
}  // namespace memtrace::report
