// From the pages of a snapshot to resident bytes by part and by site; fragmentation; thrash;
// correlation with a lag.

#include "report/faults/page_snapshots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/faults.h"
#include "format/record_encoder.h"
#include "report/analysis/analyzer.h"
#include "report/faults/correlation.h"
#include "report/faults/fragmentation.h"
#include "report/faults/thrash.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::FaultTag;
using format::PageState;

constexpr uint64_t kMilli = 1'000'000;
constexpr uint64_t kPage = 4096;

class PageSnapshotsTest : public ::testing::Test {
 protected:
  void Begin(FaultTag tag) { out_.Begin(static_cast<format::RecordTag>(tag)); }

  void Snapshot(uint64_t time_ns) {
    Begin(FaultTag::kSnapshot);
    for (uint64_t n : {uint64_t{1}, static_cast<uint64_t>(format::SnapshotReason::kEnd),
                       trace_.TicksAt(time_ns), static_cast<uint64_t>(format::PageSource::kPagemap),
                       uint64_t{0}}) {
      out_.Number(n);
    }
    out_.Bytes("0-1 ---p 0 00:00 0 [rollup]\nRss:                 100 kB\nPss: 4 kB\n");
    out_.Bytes("VmHWM:\t     200 kB\nVmPTE:\t      44 kB\n");
    out_.Bytes("");
    out_.End();
  }
  void Mapping(uint64_t begin, uint64_t end, std::string_view permissions, uint64_t inode,
               std::string_view path, uint64_t rss_kib, uint64_t swap_kib = 0) {
    Begin(FaultTag::kMapping);
    out_.Number(begin);
    out_.Number(end);
    out_.Bytes(permissions);
    out_.Number(0);
    out_.Number(inode);
    out_.Bytes(path);
    for (int i = 0; i < format::kMappingNumbers; ++i) {
      out_.Number(i == 0 ? rss_kib : i == 8 ? swap_kib : 0);
    }
    out_.End();
  }
  void Pages(uint64_t address, std::initializer_list<std::pair<PageState, uint64_t>> runs) {
    Begin(FaultTag::kPages);
    out_.Number(address);
    for (const auto& [state, pages] : runs) {
      out_.Number(static_cast<uint64_t>(state));
      out_.Number(pages);
    }
    out_.End();
  }
  void Done() {
    Begin(FaultTag::kSnapshotDone);
    out_.Number(0);
    out_.End();
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kFaults;
    header.sequence = 1;
    trace_.Block(header, {reinterpret_cast<const char*>(out_.data()), out_.size()});
  }
  // Ends the snapshot and the trace, and says what is found in it.
  RssBridge OnlyBridge() {
    Done();
    trace_.End(0, 20 * kMilli);
    const AnalyzedTrace analyzed = Analyze(trace_.Build());
    EXPECT_EQ(analyzed.analysis.resident.bridges.size(), 1u);
    return analyzed.analysis.resident.bridges.at(0);
  }
  uint64_t Part(const RssBridge& bridge, RssPart part) {
    return bridge.parts[static_cast<size_t>(part)];
  }

  TraceBuilder trace_;
  uint8_t buffer_[8192];
  format::RecordEncoder out_{buffer_, sizeof(buffer_)};
};

TEST_F(PageSnapshotsTest, ResidentBytesArePartedBetweenBlocksFreeMemoryAndTheRest) {
  auto& main = trace_.Thread(1, 4242, "main");
  // A block of four pages of which two are there, one is swapped; another that was freed.
  main.At(1 * kMilli).Node(1, 0x401100).Malloc(0x800010, 4 * kPage - 16, 1, 0);
  main.At(2 * kMilli).Node(2, 0x401200).Malloc(0x804010, kPage - 16, 2, 0);
  main.At(3 * kMilli).Free(0x804010);
  main.At(9 * kMilli).Node(3, 0x401300).Malloc(0x805010, 100, 3, 0);  // behind the snapshot
  Snapshot(5 * kMilli);
  Mapping(0x800000, 0x808000, "rw-p", 0, "[heap]", 20, 4);
  Pages(0x800000, {{PageState::kPrivate, 2}, {PageState::kSwapped, 1}, {PageState::kAbsent, 1},
                   {PageState::kPrivate, 3}});
  Mapping(0x7f0000000000, 0x7f0000010000, "r--p", 77, "/lib/some.dat", 64);
  Mapping(0x7ffd00000000, 0x7ffd00010000, "rw-p", 0, "[stack]", 16);
  const RssBridge bridge = OnlyBridge();
  EXPECT_EQ(bridge.rss, uint64_t{100} << 10);
  EXPECT_EQ(bridge.rollup_rss, uint64_t{100} << 10);
  EXPECT_EQ(bridge.peak_rss, uint64_t{200} << 10);
  EXPECT_EQ(bridge.page_tables, uint64_t{44} << 10);
  EXPECT_EQ(bridge.swap, kPage);
  // Two pages but for the 16 bytes in front, of which 8 are the header's.
  EXPECT_EQ(Part(bridge, RssPart::kLive), 2 * kPage - 16);
  EXPECT_EQ(Part(bridge, RssPart::kWaste), 8u);
  EXPECT_EQ(Part(bridge, RssPart::kRetained), 3 * kPage + 8);
  EXPECT_EQ(Part(bridge, RssPart::kMappedFiles), uint64_t{64} << 10);
  EXPECT_EQ(Part(bridge, RssPart::kStacks), uint64_t{16} << 10);
  uint64_t sum = 0;
  for (const uint64_t part : bridge.parts) sum += part;
  EXPECT_EQ(sum, bridge.rss);
  EXPECT_EQ(bridge.live_bytes, 4 * kPage - 16);
  EXPECT_EQ(bridge.untouched_bytes, kPage);
  ASSERT_EQ(bridge.sites.size(), 1u);
  EXPECT_EQ(bridge.sites[0].resident_bytes, 2 * kPage - 8);
  EXPECT_EQ(bridge.sites[0].swapped_bytes, kPage);
}

// With jobs, a snapshot is laid out while the events go on: it is of its own instant all the same.
TEST_F(PageSnapshotsTest, EachIsOfItsInstantOnAThreadOfItsOwnToo) {
  auto& main = trace_.Thread(1, 4242, "main");
  main.At(1 * kMilli).Node(1, 0x401100).Malloc(0x800010, kPage - 16, 1, 0);
  for (uint64_t time : {5 * kMilli, 10 * kMilli, 15 * kMilli}) {
    Snapshot(time);
    Mapping(0x800000, 0x803000, "rw-p", 0, "[heap]", 12);
    Pages(0x800000, {{PageState::kPrivate, 3}});
    Begin(FaultTag::kSnapshotDone);
    out_.Number(0);
    out_.End();
  }
  main.At(6 * kMilli).Node(2, 0x401200).Malloc(0x801010, kPage - 16, 2, 0);
  main.At(11 * kMilli).Free(0x800010);
  main.At(16 * kMilli).Free(0x801010);
  Done();
  trace_.End(0, 20 * kMilli);
  const std::string file = trace_.Build();
  for (const unsigned jobs : {1u, 2u}) {
    AnalyzeOptions options;
    options.jobs = jobs;
    const AnalyzedTrace analyzed = Analyze(file, options);
    const std::vector<RssBridge>& bridges = analyzed.analysis.resident.bridges;
    ASSERT_EQ(bridges.size(), 3u);
    EXPECT_EQ(bridges[0].live_bytes, kPage - 16);
    EXPECT_EQ(bridges[1].live_bytes, 2 * (kPage - 16));
    EXPECT_EQ(bridges[2].live_bytes, kPage - 16);
    ASSERT_EQ(bridges[1].sites.size(), 2u);
    EXPECT_EQ(bridges[1].sites[0].stack, bridges[0].sites.at(0).stack);
    EXPECT_EQ(bridges[1].sites[1].stack, bridges[2].sites.at(0).stack);
    EXPECT_EQ(bridges[2].sites[0].resident_bytes, kPage - 8);
  }
}

// What a block that holds custom blocks has left is live, and its own.
TEST_F(PageSnapshotsTest, WhatIsLeftOfAHolderIsItsOwn) {
  auto& main = trace_.Thread(1, 4242, "main");
  main.At(1 * kMilli).Node(1, 0x401100).Node(2, 0x401200).Malloc(0x800010, 3 * kPage - 16, 1, 0);
  main.At(2 * kMilli).Extended(format::ExtendedType::kCustomAlloc, {0x800010, 100, 0, 2}, "");
  main.At(2 * kMilli).Extended(format::ExtendedType::kCustomAlloc, {0x801000, 200, 0, 2}, "");
  Snapshot(5 * kMilli);
  Mapping(0x800000, 0x803000, "rw-p", 0, "[heap]", 8);
  Pages(0x800000, {{PageState::kPrivate, 2}, {PageState::kAbsent, 1}});
  const RssBridge bridge = OnlyBridge();
  EXPECT_EQ(bridge.live_bytes, 3 * kPage - 16);
  EXPECT_EQ(bridge.untouched_bytes, kPage);
  EXPECT_EQ(Part(bridge, RssPart::kLive), 2 * kPage - 16);
  ASSERT_EQ(bridge.sites.size(), 2u);
  EXPECT_EQ(bridge.sites[0].live_bytes, 3 * kPage - 16 - 300);
  EXPECT_EQ(bridge.sites[0].blocks, 1u) << "in two pieces";
  EXPECT_EQ(bridge.sites[1].blocks, 2u);
  EXPECT_EQ(bridge.sites[1].live_bytes, 300u);
}

// madvise and mprotect split a mapping: a block may begin with one, and go on in the next.
TEST_F(PageSnapshotsTest, ABlockIsFoundInEachMappingThatHasAPartOfIt) {
  auto& main = trace_.Thread(1, 4242, "main");
  main.At(1 * kMilli).Node(1, 0x401100).Malloc(0x7e0000202000, 8 * kPage, 1, 0);
  Snapshot(5 * kMilli);
  Mapping(0x7e0000201000, 0x7e0000202000, "rw-p", 0, "", 4);
  Pages(0x7e0000201000, {{PageState::kPrivate, 1}});
  Mapping(0x7e0000202000, 0x7e0000206000, "rw-p", 0, "", 12);
  Pages(0x7e0000202000, {{PageState::kPrivate, 3}, {PageState::kAbsent, 1}});
  Mapping(0x7e0000206000, 0x7e0000210000, "rw-p", 0, "", 8);
  // One page of the block, the page of zeros, which is in no Rss, and one behind the block.
  Pages(0x7e0000206000, {{PageState::kPrivate, 1}, {PageState::kShared, 1}, {PageState::kAbsent, 2},
                         {PageState::kPrivate, 1}});
  const RssBridge bridge = OnlyBridge();
  EXPECT_EQ(Part(bridge, RssPart::kLive), 4 * kPage);
  EXPECT_EQ(Part(bridge, RssPart::kWaste), 8u);
  EXPECT_EQ(Part(bridge, RssPart::kRetained), 2 * kPage - 8);
  EXPECT_EQ(bridge.rss, 6 * kPage);
  EXPECT_EQ(bridge.live_bytes, 8 * kPage);
  EXPECT_EQ(bridge.untouched_bytes, 4 * kPage);
  ASSERT_EQ(bridge.sites.size(), 1u);
  EXPECT_EQ(bridge.sites[0].blocks, 1u);
  EXPECT_EQ(bridge.sites[0].resident_bytes, 4 * kPage + 8);
}

// A program seals what it has filled (mprotect), or puts it away: it is there as before.
TEST_F(PageSnapshotsTest, ABlockIsThereWhateverMayBeDoneWithItsMemory) {
  auto& main = trace_.Thread(1, 4242, "main");
  main.At(1 * kMilli).Node(1, 0x401100).Malloc(0x7e0000201010, 2 * kPage - 16, 1, 0);
  main.Node(2, 0x401200).Malloc(0x7e0000204000, kPage, 2, 0);
  Snapshot(5 * kMilli);
  Mapping(0x7e0000201000, 0x7e0000203000, "r--p", 0, "", 8);
  Pages(0x7e0000201000, {{PageState::kPrivate, 2}});
  Mapping(0x7e0000204000, 0x7e0000205000, "---p", 0, "[anon:pool]", 4);
  Pages(0x7e0000204000, {{PageState::kPrivate, 1}});
  Mapping(0x7ffe00000000, 0x7ffe00002000, "r-xp", 0, "[vdso]", 4);
  const RssBridge bridge = OnlyBridge();
  EXPECT_EQ(Part(bridge, RssPart::kLive), 3 * kPage - 16);
  EXPECT_EQ(Part(bridge, RssPart::kWaste), 8u);
  EXPECT_EQ(Part(bridge, RssPart::kRetained), 8u);
  EXPECT_EQ(bridge.untouched_bytes, 0u);
  EXPECT_EQ(bridge.rss, 4 * kPage);
}

// The kernel merges neighbours: one mapping has the library's memory, a mapping of the program and
// the mapping of a block.
TEST_F(PageSnapshotsTest, WhatTheKernelMergedIsPartedByWhoMappedIt) {
  auto& main = trace_.Thread(1, 4242, "main");
  main.At(1 * kMilli).Node(1, 0x401100).Mmap(0x7e0000100000, 4 * kPage, 1);
  main.At(2 * kMilli).Node(2, 0x401200).Malloc(0x7e0000104010, 2 * kPage - 16, 2, 0);
  Snapshot(5 * kMilli);
  Begin(FaultTag::kOwnRange);
  out_.Number(0x7e0000106000);
  out_.Number(0x7e0000107800);
  out_.End();
  Mapping(0x7e0000100000, 0x7e0000110000, "rw-p", 0, "", 32);
  Pages(0x7e0000100000, {{PageState::kPrivate, 8}});
  const RssBridge bridge = OnlyBridge();
  EXPECT_EQ(Part(bridge, RssPart::kProgramMap), 4 * kPage);
  EXPECT_EQ(Part(bridge, RssPart::kLive), 2 * kPage - 16);
  EXPECT_EQ(Part(bridge, RssPart::kTool), 2 * kPage);
  EXPECT_EQ(bridge.rss, 8 * kPage);
}

PinnedBytes SiteOf(const Fragmentation& fragmentation, uint32_t number) {
  for (const auto& [site, pinned] : fragmentation.sites()) {
    if (site == number) return pinned;
  }
  return {};
}

// Against a count byte by byte.
TEST(FragmentationTest, FreeBytesAreExactWhateverTheSizes) {
  uint64_t random = 12345;
  const auto next = [&random](uint64_t below) {
    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33) % below;
  };
  for (int round = 0; round < 50; ++round) {
    constexpr uint64_t kBegin = 0x100000, kPages = 64;
    std::vector<PageRun> runs;
    std::vector<bool> there(kPages);
    for (uint64_t page = 0; page < kPages; ++page) {
      there[page] = next(5) != 0;
      const uint64_t at = kBegin + page * kPage;
      if (there[page]) runs.push_back({at, at + kPage, PageState::kPrivate});
    }
    std::vector<bool> used(kPages * kPage);
    Fragmentation fragmentation(runs, kPage, kBegin);
    uint64_t end = 0;
    for (uint64_t at = next(5000); at < kPages * kPage; at = end + 16 * next(400)) {
      end = std::min(at + 16 + (next(10) == 0 ? next(20000) : next(300)), kPages * kPage);
      fragmentation.Add(kBegin + at, kBegin + end, static_cast<uint32_t>(1 + next(3)));
      for (uint64_t byte = at; byte < end; ++byte) used[byte] = true;
    }
    fragmentation.Finish();
    uint64_t pinned = 0, enclosed = 0;
    for (uint64_t page = 0; page < kPages; ++page) {
      uint64_t live = 0;
      for (uint64_t i = 0; i < kPage; ++i) live += used[page * kPage + i];
      if (there[page] && live != 0) pinned += kPage - live;
      if (there[page] && live == 0 && (page + 1) * kPage <= end) enclosed += kPage;
    }
    EXPECT_EQ(fragmentation.pinned_bytes(), pinned) << round;
    EXPECT_EQ(fragmentation.enclosed_bytes(), enclosed) << round;
    uint64_t of_sites = 0;
    for (const auto& [site, each] : fragmentation.sites()) of_sites += each.bytes;
    EXPECT_EQ(of_sites, pinned) << round;
  }
}

TEST(FragmentationTest, FreeBytesAreKeptByTheBlocksOnTheirPage) {
  const std::vector<PageRun> runs = {{0x10000, 0x18000, PageState::kPrivate}};
  Fragmentation fragmentation(runs, kPage, 0x10000);
  fragmentation.Add(0x10000, 0x10400, 1);  // a quarter of page 0
  fragmentation.Add(0x10400, 0x10800, 2);  // and another
  fragmentation.Add(0x13000, 0x13100, 1);  // page 3; pages 1 and 2 are free
  fragmentation.Add(0x14000, 0x17800, 3);  // whole pages, and a half
  fragmentation.Finish();
  EXPECT_EQ(fragmentation.pinned_bytes(), 2048u + (4096 - 256) + 2048);
  EXPECT_EQ(SiteOf(fragmentation, 1).bytes, 1024u + 3840);
  EXPECT_EQ(SiteOf(fragmentation, 1).blocks, 2u);
  EXPECT_EQ(SiteOf(fragmentation, 2).bytes, 1024u);
  EXPECT_EQ(SiteOf(fragmentation, 3).bytes, 2048u);
  EXPECT_EQ(fragmentation.enclosed_bytes(), 2 * kPage);
  EXPECT_EQ(fragmentation.last_site(), 3u);
}

TEST(FragmentationTest, PagesThatAreNotThereCostNothing) {
  const std::vector<PageRun> runs = {{0x10000, 0x11000, PageState::kPrivate}};
  Fragmentation fragmentation(runs, kPage, 0x10000);
  fragmentation.Add(0x10000, 0x10010, 1);
  fragmentation.Add(0x20000, 0x20010, 2);
  fragmentation.Finish();
  EXPECT_EQ(fragmentation.pinned_bytes(), kPage - 16);
  EXPECT_EQ(SiteOf(fragmentation, 2).bytes, 0u);
  EXPECT_EQ(fragmentation.enclosed_bytes(), 0u);
}

UsageSample Sample(uint64_t time_ns, uint64_t live, uint64_t minor, uint64_t major = 0) {
  UsageSample sample;
  sample.time_ns = time_ns;
  sample.live_bytes = live;
  sample.bytes_allocated = live;
  sample.minor_faults = minor;
  sample.major_faults = major;
  return sample;
}

TEST(ThrashTest, PagesThatComeBackWhileTheHeapStaysAreThrash) {
  ThrashDetector thrash;
  const std::vector<UsageSample> samples = {Sample(0, 1000, 0), Sample(900 * kMilli, 1000, 0)};
  for (uint64_t page = 0; page < 100; ++page) thrash.Add(10 * kMilli, page, /*major=*/true);
  EXPECT_EQ(thrash.refaults(), 0u) << "the first read of a file is none";
  for (uint64_t page = 0; page < 50; ++page) {
    thrash.Add(250 * kMilli, page, true);
    thrash.Add(350 * kMilli, page, true);
    thrash.Add(600 * kMilli, page, false);  // memory that the program gave back
  }
  for (uint64_t page = 0; page < 5; ++page) thrash.Add(700 * kMilli, page, true);
  EXPECT_EQ(thrash.refaults(), 105u);
  const std::vector<ThrashStretch> found = thrash.Stretches(samples);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin_ns, 200 * kMilli);
  EXPECT_EQ(found[0].end_ns, 400 * kMilli);
  EXPECT_EQ(found[0].refaults, 100u);
}

TEST(ThrashTest, AHeapThatGrowsIsNoThrash) {
  ThrashDetector thrash;
  for (int time = 0; time < 2; ++time) {
    for (uint64_t page = 0; page < 50; ++page) thrash.Add(250 * kMilli, page, true);
  }
  EXPECT_TRUE(thrash.Stretches(std::vector<UsageSample>{Sample(0, 1000, 0),
                                                        Sample(290 * kMilli, 2000, 0)}).empty());
  EXPECT_EQ(thrash.Stretches(std::vector<UsageSample>{Sample(0, 1000, 0),
                                                      Sample(290 * kMilli, 1010, 0)}).size(), 1u);
}

// The heap grows in bursts; its pages are touched 40 ms later.
TEST(CorrelationTest, ALagIsFound) {
  std::vector<UsageSample> samples;
  uint64_t live = 0, minor = 0;
  for (uint64_t i = 0; i < 256; ++i) {
    if (i * i % 37 < 5) live += 1 << 20;
    if (i >= 4 && (i - 4) * (i - 4) % 37 < 5) minor += 256;
    samples.push_back(Sample(i * 10 * kMilli, live, minor));
  }
  const FaultCorrelation found = CorrelateFaults(samples);
  ASSERT_TRUE(found.live_minor.known);
  EXPECT_NEAR(static_cast<double>(found.live_minor.lag_ns), 40.0 * kMilli, 11.0 * kMilli);
  EXPECT_GT(found.live_minor.best, 0.9);
  EXPECT_LT(found.live_minor.now, 0.5);
  EXPECT_FALSE(found.live_major.known) << "there were none";
}

}  // namespace
}  // namespace memtrace::report
