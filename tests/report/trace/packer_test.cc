// The packer: the packed trace says the same as the raw one, also when the raw one
// grows meanwhile, has gaps, rings, holes and damage.

#include "report/trace/packer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "format/checksum.h"
#include "report/trace/block_scanner.h"
#include "report/trace/pack.h"
#include "tests/report/history.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

// A file that is gone with the object.
class TemporaryFile {
 public:
  TemporaryFile() : path_(testing::TempDir() + "packer_test.XXXXXX") {
    fd_ = mkstemp(path_.data());
  }
  ~TemporaryFile() {
    close(fd_);
    unlink(path_.c_str());
  }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
  int fd_;
};

// A source that shows only its first bytes.
class GrowingSource : public ByteSource {
 public:
  explicit GrowingSource(std::string bytes) : bytes_(std::move(bytes)) {}
  void Show(size_t bytes) { shown_ = std::min(bytes, bytes_.size()); }
  uint64_t Size() const override { return shown_; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    return MemorySource(bytes_.substr(0, shown_)).ReadAt(offset, out);
  }

 private:
  std::string bytes_;
  size_t shown_ = 0;
};

std::string Pack(const std::string& raw, const PackerOptions& options = {}) {
  MemorySource source(raw);
  TemporaryFile out;
  Packer packer(&source, out.fd(), out.path(), options);
  EXPECT_TRUE(packer.Start().ok());
  EXPECT_TRUE(packer.Finish().ok());
  return out.bytes();
}

// A flight recorder's file of the blocks of `trace`: those of its first events are in segment 0,
// behind a place that was taken for a block of 512 bytes and still has the beginning of the longer
// one that stood there before.
std::string WithAnUnwrittenPlace(const std::string& trace) {
  constexpr uint64_t kSegments = 4096, kPlace = 512;
  format::FileHeader file;
  memcpy(&file, trace.data(), sizeof(file));
  file.flags |= format::kFileNewest;
  file.header_checksum = format::HeaderChecksum(file);
  format::BlockHeader status{};
  status.magic = format::kBlockMagic;
  status.kind = format::BlockKind::kStatus;
  status.payload_bytes = status.content_bytes = sizeof(format::StatusArea);
  status.header_checksum = format::HeaderChecksum(status);
  format::StatusArea area{};
  area.magic = format::kStatusMagic;
  area.bytes = sizeof(area);
  area.segments_begin = area.segment_bytes = kSegments;
  area.segments = 4;
  area.segments_begun = area.segment_beginning = 8;
  std::fill_n(area.segment_ticks, 4, TraceBuilder::kStartTicks + 2);
  format::BlockHeader remnant = status;
  remnant.kind = format::BlockKind::kEvents;
  remnant.thread = 9;
  remnant.sequence = 1;
  remnant.clock_ticks = TraceBuilder::kStartTicks + 1;
  remnant.monotonic_ns = TraceBuilder::kStartNs + 1;
  remnant.payload_bytes = remnant.content_bytes = 2 * kPlace;
  remnant.header_checksum = format::HeaderChecksum(remnant);

  std::string bytes(kSegments + kPlace, '\0');
  const auto put = [&bytes](uint64_t at, const auto& what) {
    bytes.replace(at, sizeof(what), reinterpret_cast<const char*>(&what), sizeof(what));
  };
  put(0, file);
  put(sizeof(file), status);
  put(sizeof(file) + sizeof(status), area);
  put(kSegments, remnant);
  return bytes + trace.substr(AlignToBlock(sizeof(file)));
}

void ExpectSame(const AnalyzedTrace& a, const AnalyzedTrace& b) {
  const Analysis &x = a.analysis, &y = b.analysis;
  EXPECT_EQ(x.totals.allocations, y.totals.allocations);
  EXPECT_EQ(x.totals.frees, y.totals.frees);
  EXPECT_EQ(x.totals.live_bytes, y.totals.live_bytes);
  EXPECT_EQ(x.totals.peak_live_bytes, y.totals.peak_live_bytes);
  EXPECT_EQ(x.totals.peak_time_ns, y.totals.peak_time_ns);
  EXPECT_EQ(x.totals.temporary_allocations, y.totals.temporary_allocations);
  EXPECT_EQ(x.coverage.events, y.coverage.events);
  EXPECT_EQ(x.coverage.dropped_events, y.coverage.dropped_events);
  EXPECT_EQ(x.coverage.recovered_events, y.coverage.recovered_events);
  EXPECT_EQ(x.coverage.lost_blocks, y.coverage.lost_blocks);
  EXPECT_EQ(x.coverage.unordered_events, y.coverage.unordered_events);
  EXPECT_EQ(x.coverage.unknown_frees, y.coverage.unknown_frees);
  EXPECT_EQ(x.coverage.unseen_frees, y.coverage.unseen_frees);
  EXPECT_EQ(x.coverage.marked_stacks, y.coverage.marked_stacks);
  EXPECT_EQ(x.process.duration_ns, y.process.duration_ns);
  EXPECT_EQ(x.process.command, y.process.command);
  EXPECT_EQ(x.process.pid, y.process.pid);
  EXPECT_EQ(a.stacks->size(), b.stacks->size());
  ASSERT_EQ(x.sites.size(), y.sites.size());
  for (size_t i = 0; i < x.sites.size(); ++i) {
    EXPECT_EQ(x.sites[i].stack, y.sites[i].stack);
    EXPECT_EQ(x.sites[i].live_bytes, y.sites[i].live_bytes);
    EXPECT_EQ(x.sites[i].bytes_at_peak, y.sites[i].bytes_at_peak);
    EXPECT_EQ(x.sites[i].last_time_ns, y.sites[i].last_time_ns);
  }
  ASSERT_EQ(x.live.size(), y.live.size());
  for (size_t i = 0; i < x.live.size(); ++i) {
    EXPECT_EQ(x.live[i].address, y.live[i].address);
    EXPECT_EQ(x.live[i].time_ns, y.live[i].time_ns);
  }
}

AnalyzeOptions KeepLive() {
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  return options;
}

TEST(PackerTest, ABlockBehindAPlaceThatWasNotWrittenIsReadInAFlightRecorder) {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 100, "main");
  main.At(1000).Node(1, 0x401000).Malloc(0x1010, 10, 1).Malloc(0x2010, 20, 1).Flush(2000);
  main.At(3000).Free(0x1010).Flush(4000);
  trace.End(0, 5000);
  const std::string raw = WithAnUnwrittenPlace(trace.Build());
  const AnalyzedTrace expected = Analyze(raw);
  EXPECT_EQ(expected.analysis.totals.allocations, 2u);
  EXPECT_EQ(expected.analysis.totals.frees, 1u);
  EXPECT_EQ(expected.analysis.coverage.lost_blocks, 0u);
  EXPECT_FALSE(expected.analysis.coverage.truncated);
  ExpectSame(expected, Analyze(Pack(raw)));
}

TEST(PackerTest, ThePackedTraceSaysTheSame) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    HistoryOptions history_options;
    history_options.actions = 2000;
    history_options.longest_step_ns = 100'000;  // some 0.1 s: several clock pairs
    const std::vector<Action> history = MakeHistory(history_options, random);
    const std::string raw = TraceOf(history, {0.1, 0, 0.05}, random);
    PackerOptions options;
    options.merge_bytes = 64 << random() % 16;
    options.level = static_cast<int>(random() % 4);
    const std::string packed = Pack(raw, options);
    ExpectSame(Analyze(raw, KeepLive()), Analyze(packed, KeepLive()));
    auto reader = Read(packed);
    EXPECT_TRUE((*reader)->header().flags & format::kFilePacked);
    EXPECT_EQ((*reader)->damage(), "");
    EXPECT_FALSE((*reader)->cut());
    if (options.level > 0 && options.merge_bytes >= 4096) {
      EXPECT_LT(packed.size(), raw.size());
    }
    ExpectSame(Analyze(raw, KeepLive()), Analyze(Pack(packed), KeepLive()));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

std::string TraceWithEverything() {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  auto& b = trace.Thread(2, 101, "worker");
  auto& c = trace.Thread(3, 102, "killed");
  a.At(1000).Node(1, 0x401000).Malloc(0x1010, 10, 1).Flush(2000);
  b.At(1500).Node(1, 0x402000).Malloc(0x3010, 30, 1).Free(0x1010).Flush(2500);
  trace.Gap(640);
  a.At(3000).Malloc(0x4010, 40, 1).Dropped(5).Flush(3500);
  a.SkipBlocks(2).At(4000).Malloc(0x5010, 50, 1).Flush(4500);
  c.At(4200).Malloc(0x6010, 60).LeaveInRing();
  b.At(5000).Malloc(0x7010, 70, 1).LeaveInRing();
  b.At(5500).Malloc(0x8010, 80, 1).Flush(6000);
  return trace.Build();
}

TEST(PackerTest, KeepsGapsHolesRingsAndLosses) {
  const std::string raw = TraceWithEverything();
  const std::string packed = Pack(raw);
  ExpectSame(Analyze(raw, KeepLive()), Analyze(packed, KeepLive()));
  const Analysis a = Analyze(packed).analysis;
  EXPECT_EQ(a.coverage.recovered_events, 2u);
  EXPECT_EQ(a.coverage.lost_blocks, 2u);
  EXPECT_EQ(a.coverage.dropped_events, 5u);
  EXPECT_EQ((*Read(packed))->statistics().ring_blocks, 0u);
}

std::string PackAndSeal(const std::string& raw) {
  MemorySource source(raw);
  TemporaryFile out;
  PackerOptions options;
  options.seal = true;
  options.merge_bytes = 64;  // many blocks
  Packer packer(&source, out.fd(), out.path(), options);
  EXPECT_TRUE(packer.Start().ok());
  EXPECT_TRUE(packer.Finish().ok());
  EXPECT_TRUE(packer.Seal().ok());
  return out.bytes();
}

// Between two blocks nothing shows that there was more.
TEST(PackerTest, ASealedTraceIsKnownToBeCutWhereverItIs) {
  const std::string packed = PackAndSeal(TraceWithEverything());
  EXPECT_FALSE((*Read(packed))->cut());
  size_t cuts = 0, last_block = 0;
  for (size_t at = sizeof(format::FileHeader); at < packed.size(); at += 64) {
    uint32_t magic;
    memcpy(&magic, packed.data() + at, sizeof(magic));
    if (magic == format::kBlockMagic) last_block = at;
  }
  for (size_t bytes = sizeof(format::FileHeader); bytes <= last_block; ++bytes) {
    auto reader = Read(packed.substr(0, bytes));
    if (!reader.ok()) continue;
    ++cuts;
    EXPECT_TRUE((*reader)->cut()) << bytes;
  }
  EXPECT_GT(cuts, 1000u);
  // Packed again it has two seals; the first does not count.
  const std::string again = PackAndSeal(packed);
  EXPECT_FALSE((*Read(again))->cut());
  EXPECT_TRUE((*Read(again.substr(0, again.size() - 128)))->cut());
  ExpectSame(Analyze(packed, KeepLive()), Analyze(again, KeepLive()));
}

// The headers of rings are not written, but the clock goes by them too.
TEST(PackerTest, KeepsTheClocksOfHeadersThatItLeavesOut) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  auto& b = trace.Thread(2, 101, "worker");
  a.At(1000).Malloc(0x1010, 10).Flush(2000);
  b.At(20'000'000).Malloc(0x2010, 20).LeaveInRing(UINT32_MAX, 1'000'000);
  a.At(30'000'000).Malloc(0x3010, 30).Flush(40'000'000);
  const std::string raw = trace.Build();
  const AnalyzedTrace of_raw = Analyze(raw, KeepLive());
  ASSERT_EQ(of_raw.analysis.live.size(), 3u);
  EXPECT_NEAR(static_cast<double>(of_raw.analysis.live[2].time_ns), 30'500'000, 1000);  // between the two
  ExpectSame(of_raw, Analyze(Pack(raw), KeepLive()));
}

TEST(PackerTest, ABlockThatIsTwiceInTheFileCountsOnce) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush(1500);
  a.At(2000).Malloc(0x2010, 20).Free(0x1010).Flush(2500);
  a.At(3000).Malloc(0x3010, 30).Flush(3500);
  a.SkipBlocks(-2u).At(2000).Malloc(0x2010, 20).Free(0x1010).Flush(4000);
  a.SkipBlocks(1).At(4500).Malloc(0x4010, 40).Flush(5000);
  trace.End(0, 6000);
  const std::string raw = trace.Build();
  ASSERT_EQ(Analyze(raw).analysis.totals.allocations, 4u);
  ExpectSame(Analyze(raw, KeepLive()), Analyze(Pack(raw), KeepLive()));
}

// What another thread wrote of a private ring, before its owner did: docs/lifecycle.md.
TEST(PackerTest, OfABlockThatWasWrittenEarlyTheWholeIsKept) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush(1500);
  a.At(2000).Malloc(0x2010, 20).Early().Flush(2500);
  a.SkipBlocks(-1u).At(2000).Malloc(0x2010, 20).Malloc(0x3010, 30).Flush(3500);
  a.At(4500).Malloc(0x4010, 40).Flush(5000);
  trace.End(0, 6000);
  const std::string raw = trace.Build();
  ASSERT_EQ(Analyze(raw).analysis.totals.live_bytes, 100u);
  const std::string packed = Pack(raw);
  ExpectSame(Analyze(raw, KeepLive()), Analyze(packed, KeepLive()));
  ExpectSame(Analyze(raw, KeepLive()), Analyze(Pack(packed), KeepLive()));
}

TEST(PackerTest, ARingThatTheFileEndsWithinIsKept) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush(1500);
  a.At(2000).Malloc(0x2010, 20).Malloc(0x3010, 30).LeaveInRing();
  const std::string raw = trace.Build();
  const std::string cut = raw.substr(0, raw.size() - 1024);  // what the ring has not used
  ASSERT_EQ(Analyze(cut).analysis.totals.live_bytes, 60u);
  EXPECT_EQ(Analyze(Pack(cut)).analysis.totals.live_bytes, 60u);
}

// Nothing guards the clocks of a ring.
TEST(PackerTest, ClocksOfARingThatCannotBeAreNotBelieved) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush(2000);
  a.At(20'000'000).Malloc(0x2010, 20).Flush(30'000'000);
  a.At(40'000'000).Malloc(0x3010, 30).LeaveInRing();
  std::string raw = trace.Build();
  const std::string ring_ns = [] {
    const uint64_t ns = TraceBuilder::kStartNs + 40'000'000;
    return std::string(reinterpret_cast<const char*>(&ns), sizeof(ns));
  }();
  const size_t at = raw.rfind(ring_ns);
  ASSERT_NE(at, raw.npos);
  const AnalyzedTrace before = Analyze(raw, KeepLive());
  raw[at + 6] ^= 4;  // 13 days
  ExpectSame(before, Analyze(raw, KeepLive()));
  ExpectSame(before, Analyze(Pack(raw), KeepLive()));
}

TEST(PackerTest, FollowsAFileThatGrowsByteByByte) {
  const std::string raw = TraceWithEverything();
  GrowingSource source(raw);
  TemporaryFile out;
  Packer packer(&source, out.fd(), out.path(), {});
  source.Show(10);
  EXPECT_EQ(packer.Start().code(), absl::StatusCode::kFailedPrecondition);
  source.Show(64);
  ASSERT_TRUE(packer.Start().ok());
  for (size_t shown = 64; shown <= raw.size(); shown += 31) {
    source.Show(shown);
    ASSERT_TRUE(packer.Advance().ok());
    EXPECT_LE(packer.position(), shown + 64);
  }
  source.Show(raw.size());
  ASSERT_TRUE(packer.Finish().ok());
  EXPECT_EQ(packer.damaged_blocks(), 0u);
  ExpectSame(Analyze(raw, KeepLive()), Analyze(out.bytes(), KeepLive()));
}

TEST(PackerTest, KeepsNothingOfThreadsThatAreLongGone) {
  constexpr uint32_t kThreads = 1000;
  TraceBuilder trace;
  for (uint32_t serial = 1; serial <= kThreads; ++serial) {
    trace.Thread(serial).At(serial * 1000).Malloc(serial << 12 | 0x10, 100).Free(serial << 12 | 0x10);
  }
  const std::string raw = trace.Build();
  GrowingSource source(raw);
  TemporaryFile out;
  PackerOptions options;
  options.lag_bytes = raw.size() / 50;
  Packer packer(&source, out.fd(), out.path(), options);
  size_t most = 0;
  for (size_t part = 1; part <= 100; ++part) {
    source.Show(raw.size() * part / 100);
    if (part == 1) {
      ASSERT_TRUE(packer.Start().ok());
    }
    ASSERT_TRUE(packer.Advance().ok());
    most = std::max(most, packer.buffered_threads());
  }
  EXPECT_LE(most, kThreads / 10);
  EXPECT_GT(most, 0u);
  ASSERT_TRUE(packer.Finish().ok());
  ExpectSame(Analyze(raw, KeepLive()), Analyze(out.bytes(), KeepLive()));
}

TEST(PackerTest, ABlockThatIsFinishedBehindLaterOnesIsNotForgotten) {
  const std::string raw = TraceWithEverything();
  auto reader = Read(raw);
  const uint64_t late = (*reader)->streams()[1].blocks[0].offset;
  std::string unfinished = raw;
  unfinished.replace(late, 128, 128, '\0');  // reserved, not yet written

  TemporaryFile in, out;
  ASSERT_EQ(pwrite(in.fd(), unfinished.data(), raw.size(), 0), static_cast<ssize_t>(raw.size()));
  FileSource source(in.fd());
  Packer packer(&source, out.fd(), out.path(), {});
  ASSERT_TRUE(packer.Start().ok());
  ASSERT_TRUE(packer.Advance().ok());
  EXPECT_LE(packer.position(), late);
  ASSERT_EQ(pwrite(in.fd(), raw.data() + late, 128, static_cast<off_t>(late)), 128);
  ASSERT_TRUE(packer.Advance().ok());
  EXPECT_GT(packer.position(), late);
  ASSERT_TRUE(packer.Finish().ok());
  ExpectSame(Analyze(raw, KeepLive()), Analyze(out.bytes(), KeepLive()));
}

TEST(PackerTest, LeavesOutADamagedBlockAndCountsIt) {
  std::string raw = TraceWithEverything();
  auto reader = Read(raw);
  raw[(*reader)->streams()[0].blocks[0].offset + sizeof(format::BlockHeader) + 8] ^= 1;
  MemorySource source(raw);
  TemporaryFile out;
  Packer packer(&source, out.fd(), out.path(), {});
  ASSERT_TRUE(packer.Start().ok());
  ASSERT_TRUE(packer.Finish().ok());
  EXPECT_EQ(packer.damaged_blocks(), 1u);
  const Analysis a = Analyze(out.bytes()).analysis;
  EXPECT_EQ(a.coverage.lost_blocks, 3u);
  EXPECT_EQ(a.totals.allocations, Analyze(raw).analysis.totals.allocations);
}

TEST(PackerTest, EveryPrefixOfThePackedFileIsATrace) {
  std::mt19937_64 random(6);
  const std::string raw = TraceOf(MakeHistory({}, random), {}, random);
  PackerOptions options;
  options.merge_bytes = 2048;
  const std::string packed = Pack(raw, options);
  uint64_t last = 0;
  for (size_t cut = 64; cut <= packed.size(); cut += 7) {
    const Analysis a = Analyze(packed.substr(0, cut)).analysis;
    EXPECT_GE(a.coverage.events, last);
    last = a.coverage.events;
  }
  EXPECT_GT(last, 0u);
}

TEST(PackTest, WritesTheWholeFileOrNone) {
  TemporaryFile in;
  const std::string output = in.path() + ".out";
  ASSERT_EQ(pwrite(in.fd(), "nonsense", 8, 0), 8);
  auto failed = RunPack({in.path(), output, 3});
  EXPECT_THAT(std::string(failed.status().message()),
              testing::HasSubstr(in.path() + " is not a trace"));
  EXPECT_NE(access(output.c_str(), F_OK), 0);

  const std::string raw = TraceWithEverything();
  ASSERT_EQ(pwrite(in.fd(), raw.data(), raw.size(), 0), static_cast<ssize_t>(raw.size()));
  auto result = RunPack({in.path(), output, 3});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->raw_bytes, raw.size());
  EXPECT_EQ(access(output.c_str(), F_OK), 0);
  unlink(output.c_str());

  auto unwritable = RunPack({in.path(), in.path() + "/x.mtr", 3});
  EXPECT_EQ(std::string(unwritable.status().message()),
            "cannot write " + in.path() + "/x.mtr: Not a directory");
}

TEST(PackTest, NamesThePackedFileAfterTheRawOne) {
  EXPECT_EQ(PackedName("a/x.mtr"), "a/x.packed.mtr");
  EXPECT_EQ(PackedName("x.trace"), "x.trace.packed.mtr");
}

}  // namespace
}  // namespace memtrace::report
