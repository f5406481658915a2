// The reader on files that are not what they should be: empty, foreign, cut at any
// byte, with any bit flipped, with gaps, rings and copies.

#include "report/trace/trace_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "format/checksum.h"
#include "report/analysis/coverage.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using testing::HasSubstr;

std::string MessageFor(const std::string& bytes) {
  auto reader = Read(bytes);
  EXPECT_FALSE(reader.ok());
  return std::string(reader.status().message());
}

format::FileHeader HeaderOf(const std::string& bytes) {
  format::FileHeader header;
  memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::string WithHeader(std::string bytes, format::FileHeader header) {
  header.header_checksum = format::HeaderChecksum(header);
  bytes.replace(0, sizeof(header), reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes;
}

// Two threads, several blocks of each, records.
std::string SmallTrace(format::Codec codec = format::Codec::kRaw) {
  TraceBuilder trace({.event_codec = codec});
  auto& a = trace.Thread(1, 100, "main");
  auto& b = trace.Thread(2, 101, "worker");
  a.At(1000).Node(1, 0x401000).Malloc(0x1010, 10, 1).Malloc(0x2010, 20, 1).Flush(2000);
  b.At(1500).Node(1, 0x402000).Malloc(0x3010, 30, 1).Free(0x1010).Flush(2500);
  a.At(3000).Malloc(0x4010, 40, 1).Flush(3500);
  trace.Counter("tool_memory_bytes", 4096);
  a.At(4000).Free(0x2010).Flush(4500);
  trace.End(0, 5000);
  return trace.Build();
}

TEST(TraceReaderTest, SaysWhyAFileIsNoTrace) {
  const std::string good = SmallTrace();
  EXPECT_THAT(MessageFor(""), HasSubstr("test.mtr is empty"));
  EXPECT_THAT(MessageFor("#!/bin/sh\n" + std::string(100, 'x')), HasSubstr("is not a trace"));
  EXPECT_THAT(MessageFor("MTR"), HasSubstr("is not a trace"));
  EXPECT_THAT(MessageFor(std::string(4096, '\0')), HasSubstr("has no header"));
  EXPECT_THAT(MessageFor(good.substr(0, 40)), HasSubstr("cut within its header: 40 of 64"));
  format::FileHeader header = HeaderOf(good);
  header.version = 2;
  EXPECT_THAT(MessageFor(WithHeader(good, header)), HasSubstr("format version 2"));
  std::string flipped = good;
  flipped[20] ^= 1;
  EXPECT_THAT(MessageFor(flipped), HasSubstr("checksum of its header"));
}

TEST(TraceReaderTest, TellsWhyAFileCannotBeOpened) {
  const std::string path = testing::TempDir() + "no such directory/x.mtr";
  EXPECT_EQ(std::string(TraceReader::Open(path).status().message()),
            "cannot open " + path + ": No such file or directory");
  EXPECT_THAT(std::string(TraceReader::Open("/tmp").status().message()),
              HasSubstr("cannot read /tmp: Is a directory"));
  EXPECT_THAT(std::string(TraceReader::Open("/dev/null").status().message()),
              HasSubstr("not a regular file"));
}

// A report of some sites reads it twice, and `memtrace run` packs and removes it when its process has
// ended.
TEST(TraceReaderTest, AFileThatIsHeldIsReadAgainWhateverBecomesOfItsName) {
  const std::string path = testing::TempDir() + "held.mtr";
  const auto allocations = [&]() -> uint64_t {
    const auto trace = AnalyzeTrace(path, {});
    return trace.ok() ? trace->analysis.totals.allocations : UINT64_MAX;
  };
  std::ofstream(path, std::ios::binary) << SmallTrace();
  {
    const HeldFile held(path);
    EXPECT_EQ(allocations(), 4u);
    EXPECT_EQ(unlink(path.c_str()), 0);
    EXPECT_EQ(allocations(), 4u);
    std::ofstream(path, std::ios::binary) << "another file";
    EXPECT_EQ(allocations(), 4u);
    EXPECT_EQ(allocations(), 4u) << "however often";
    EXPECT_FALSE(FileSource::Open(path + ".packed").ok()) << "another name";
  }
  EXPECT_EQ(allocations(), UINT64_MAX) << "another file";
  EXPECT_EQ(unlink(path.c_str()), 0);
  const HeldFile none(path);
  EXPECT_EQ(std::string(TraceReader::Open(path).status().message()),
            "cannot open " + path + ": No such file or directory");
}

TEST(TraceReaderTest, ALargerHeaderOfALaterWriterIsSkipped) {
  std::string bytes = SmallTrace();
  format::FileHeader header = HeaderOf(bytes);
  header.header_bytes = 100;  // blocks begin at 128
  bytes.insert(64, 64, '\x55');
  const AnalyzedTrace trace = Analyze(WithHeader(bytes, header));
  EXPECT_EQ(trace.analysis.totals.allocations, 4u);
  EXPECT_FALSE(trace.analysis.coverage.truncated);
}

TEST(TraceReaderTest, ACutAnywhereLeavesWhatWasWholeBefore) {
  const std::string bytes = SmallTrace();
  uint64_t last = 0;
  for (size_t cut = 64; cut <= bytes.size(); ++cut) {
    const AnalyzedTrace trace = Analyze(bytes.substr(0, cut));
    const uint64_t events = trace.analysis.coverage.events;
    EXPECT_GE(events, last) << "cut at " << cut;
    EXPECT_EQ(trace.analysis.coverage.lost_blocks, 0u) << "cut at " << cut;
    last = events;
  }
  EXPECT_EQ(last, 6u);
}

TEST(TraceReaderTest, SaysWhereTheFileIsCut) {
  const std::string bytes = SmallTrace();
  const Analysis a = Analyze(bytes.substr(0, bytes.size() - 70)).analysis;
  EXPECT_TRUE(a.coverage.truncated);
  EXPECT_EQ(a.coverage.damage,
            "the file ends at byte " + std::to_string(bytes.size() - 70) +
                ", within a block: it was cut there, or its writer was killed; what was whole "
                "before was read");
}

TEST(TraceReaderTest, EveryFlippedBitIsNoticedOrHarmless) {
  const std::string good = SmallTrace();
  const Analysis whole = Analyze(good).analysis;
  size_t noticed = 0, harmless = 0;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    auto reader = Read(bytes);
    if (!reader.ok()) {
      ++noticed;
      EXPECT_LT(bit / 8, sizeof(format::FileHeader));
      continue;
    }
    auto trace = AnalyzeTrace(**reader, {});
    ASSERT_TRUE(trace.ok());
    if (!(*reader)->damage().empty()) {
      ++noticed;
      EXPECT_TRUE(trace->analysis.coverage.truncated);
      continue;
    }
    ++harmless;
    EXPECT_EQ(trace->analysis.totals.allocations, whole.totals.allocations) << "bit " << bit;
    EXPECT_EQ(trace->analysis.totals.live_bytes, whole.totals.live_bytes) << "bit " << bit;
    EXPECT_EQ(trace->analysis.coverage.events, whole.coverage.events) << "bit " << bit;
    EXPECT_EQ(trace->analysis.process.duration_ns, whole.process.duration_ns) << "bit " << bit;
  }
  EXPECT_GT(noticed, harmless) << "only padding is not covered by a checksum";
}

TEST(TraceReaderTest, CodedWordsAreTheWords) {
  const AnalyzedTrace raw = Analyze(SmallTrace());
  const AnalyzedTrace coded = Analyze(SmallTrace(format::Codec::kWords));
  EXPECT_EQ(coded.analysis.totals.allocations, 4u);
  EXPECT_EQ(coded.analysis.totals.allocations, raw.analysis.totals.allocations);
  EXPECT_EQ(coded.analysis.totals.live_bytes, raw.analysis.totals.live_bytes);
  EXPECT_EQ(coded.analysis.coverage.events, raw.analysis.coverage.events);
  EXPECT_FALSE(coded.analysis.coverage.truncated);
}

// By a writer that gets the checksums right.
TEST(TraceReaderTest, CodedWordsThatDoNotDecodeAreDamage) {
  const std::string good = SmallTrace(format::Codec::kWords);
  auto reader = Read(good);
  ASSERT_TRUE(reader.ok());
  const uint64_t second = (*reader)->streams()[0].blocks[1].offset;
  const auto with = [&](auto change) {
    std::string bytes = good;
    format::BlockHeader header;
    memcpy(&header, bytes.data() + second, sizeof(header));
    change(&header);
    header.payload_checksum =
        format::Checksum(bytes.data() + second + sizeof(header), header.payload_bytes);
    header.header_checksum = format::HeaderChecksum(header);
    memcpy(bytes.data() + second, &header, sizeof(header));
    return Analyze(bytes).analysis;
  };
  const auto lost = [&](auto change) {
    const Analysis a = with(change);
    EXPECT_THAT(a.coverage.damage, HasSubstr("does not decode to words"));
    EXPECT_EQ(a.coverage.lost_blocks, 1u);
  };
  EXPECT_EQ(with([](format::BlockHeader*) {}).coverage.damage, "");
  lost([](format::BlockHeader* header) { header->content_bytes += 8; });
  lost([](format::BlockHeader* header) { header->content_bytes -= 8; });
  lost([](format::BlockHeader* header) { header->content_bytes += 4; });
  lost([](format::BlockHeader* header) { header->payload_bytes -= 1; });
  lost([](format::BlockHeader* header) { header->content_bytes = format::kMaxPayloadBytes; });
}

TEST(TraceReaderTest, SaysWhereTheDamageIsAndGoesOnBehindIt) {
  const std::string good = SmallTrace();
  auto reader = Read(good);
  ASSERT_TRUE(reader.ok());
  const BlockRef& second = (*reader)->streams()[0].blocks[1];
  std::string bytes = good;
  bytes[second.offset + sizeof(format::BlockHeader) + 3] ^= 1;
  const Analysis a = Analyze(bytes).analysis;
  EXPECT_THAT(a.coverage.damage, HasSubstr(absl::StrCat("damaged at byte ", second.offset,
                                                        ": the checksum of the block")));
  EXPECT_THAT(a.coverage.damage, HasSubstr("everything else was read"));
  EXPECT_EQ(a.coverage.lost_blocks, 1u);
  EXPECT_EQ(a.totals.allocations, 3u) << "the block in the middle is gone, the last is there";
  EXPECT_EQ(a.totals.frees, 2u);
}

TEST(TraceReaderTest, ADamagedHeaderIsSkippedToTheNextBlock) {
  const std::string good = SmallTrace();
  auto reader = Read(good);
  const uint64_t offset = (*reader)->streams()[1].blocks[0].offset;
  std::string bytes = good;
  bytes[offset + 10] ^= 1;
  const Analysis a = Analyze(bytes).analysis;
  EXPECT_THAT(a.coverage.damage,
              HasSubstr(absl::StrCat("damaged at byte ", offset, ": the header")));
  EXPECT_EQ(a.totals.allocations, 3u);
}

TEST(TraceReaderTest, AGapIsNoDamage) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush();
  trace.Gap(64 * 100);
  a.At(2000).Malloc(0x2010, 20).Flush();
  trace.Gap(128);
  auto reader = Read(trace.Build());
  ASSERT_TRUE(reader.ok());
  const Analysis a1 = AnalyzeTrace(**reader, {})->analysis;
  EXPECT_EQ(a1.totals.allocations, 2u);
  EXPECT_EQ((*reader)->statistics().gaps, 2u);
  EXPECT_EQ((*reader)->statistics().gap_bytes, 64u * 102);
  EXPECT_EQ((*reader)->damage(), "");
  EXPECT_TRUE((*reader)->cut()) << "space was reserved at the end";
}

TEST(TraceReaderTest, RecoversTheRingsOfAKilledProcess) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush();
  a.At(2000).Malloc(0x2010, 20).Free(0x1010).LeaveInRing();
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.coverage.events, 3u);
  EXPECT_EQ(analysis.coverage.recovered_events, 2u);
  EXPECT_EQ(analysis.process.end, ProcessInfo::End::kCut);
  EXPECT_EQ(analysis.totals.live_bytes, 20u);
}

TEST(TraceReaderTest, RingsOfAProcessThatEndedAreNotRecovered) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).LeaveInRing();
  trace.End(0, 2000);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.coverage.events, 1u);
  EXPECT_EQ(analysis.coverage.recovered_events, 0u);
}

TEST(TraceReaderTest, ARingThatIsAlreadyABlockIsACopy) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).LeaveInRing();
  a.SkipBlocks(-1u).At(1000).Malloc(0x1010, 10).Flush();  // the same number again
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.coverage.events, 1u);
  EXPECT_EQ(analysis.coverage.recovered_events, 0u);
}

TEST(TraceReaderTest, ARingReplacesTheDamagedBlockItIsACopyOf) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).LeaveInRing();
  a.SkipBlocks(-1u).At(1000).Malloc(0x1010, 10).Flush();
  std::string bytes = trace.Build();
  auto reader = Read(bytes);
  bytes[(*reader)->streams()[0].blocks[0].offset + sizeof(format::BlockHeader)] ^= 1;
  const Analysis analysis = Analyze(bytes).analysis;
  EXPECT_EQ(analysis.coverage.events, 1u);
  EXPECT_EQ(analysis.coverage.lost_blocks, 0u);
}

// What _exit() leaves of a thread that was copying its ring to the file.
TEST(TraceReaderTest, ABlockThatTheEndToreIsWholeInItsRing) {
  for (const bool has_ring : {true, false}) {
    for (const bool has_end : {true, false}) {
      TraceBuilder trace;
      auto& a = trace.Thread(1, 100, "main");
      auto& b = trace.Thread(2, 101, "worker");
      a.At(1000).Malloc(0x1010, 10).Flush();
      if (has_ring) b.At(1500).Malloc(0x2010, 20).LeaveInRing().SkipBlocks(-1u);
      if (has_end) trace.End(3, 2000, format::EndReason::kUnderscoreExit);
      trace.Build();  // and what follows lies behind the end
      b.At(1500).Malloc(0x2010, 20).Flush();
      const std::string bytes = trace.Build();
      const Analysis analysis =
          Analyze(bytes.substr(0, bytes.size() - format::kBlockAlignment + 8)).analysis;
      EXPECT_EQ(analysis.coverage.events, has_ring ? 2u : 1u);
      EXPECT_EQ(analysis.coverage.truncated, !has_ring || !has_end);
      EXPECT_EQ(analysis.coverage.damage.empty(), has_ring && has_end) << analysis.coverage.damage;
    }
  }
}

// The last block is being written while the process is at work: nothing is missing of what was before.
TEST(TraceReaderTest, AFileThatIsBeingWrittenIsNotCut) {
  TraceBuilder trace({.pid = static_cast<uint32_t>(getpid())});
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush();
  const size_t whole = trace.Build().size();
  a.At(1500).Malloc(0x2010, 20).Flush();
  const std::string bytes = trace.Build().substr(0, whole + 8);
  const std::string path = testing::TempDir() + "being_written.mtr";
  std::ofstream(path, std::ios::binary) << bytes;
  for (const bool at_work : {true, false}) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    close(fd);
    if (!at_work) munmap(mapped, 4096);
    const auto reader = TraceReader::Open(path);
    if (at_work) munmap(mapped, 4096);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->live_until_ns() != 0, at_work);
    EXPECT_EQ((*reader)->cut(), !at_work);
    EXPECT_EQ((*reader)->cut_place().empty(), at_work) << (*reader)->cut_place();
  }
  unlink(path.c_str());
}

// The file of a process that lives: it may be another one each time that it is read.
class LivingSource : public ByteSource {
 public:
  explicit LivingSource(const std::string* bytes) : bytes_(bytes) {}
  uint64_t Size() const override { return bytes_->size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    return MemorySource(*bytes_).ReadAt(offset, out);
  }

 private:
  const std::string* bytes_;
};

// What is said of a file that was indexed as `before` and then became `after`.
Analysis OfAChangingFile(const std::string& before, const std::string& after) {
  std::string now = before;
  auto reader = TraceReader::FromSource(std::make_unique<LivingSource>(&now), "test.mtr");
  EXPECT_TRUE(reader.ok());
  now = after;
  auto trace = AnalyzeTrace(**reader, AnalyzeOptions());
  EXPECT_TRUE(trace.ok());
  return std::move(trace->analysis);
}

TEST(TraceReaderTest, ARingThatIsBegunAnewMeanwhileIsReadAsItWas) {
  std::string bytes[2];
  for (const bool later : {false, true}) {
    TraceBuilder trace;
    auto& a = trace.Thread(1, 100, "main");
    a.At(1000).Malloc(0x1010, 10).Flush();
    if (later) {
      a.SkipBlocks(5).At(9000).Malloc(0x9010, 90).Free(0x7010).LeaveInRing();
    } else {
      a.At(2000).Malloc(0x2010, 20).Free(0x1010).LeaveInRing();
    }
    bytes[later] = trace.Build();
  }
  const Analysis analysis = OfAChangingFile(bytes[0], bytes[1]);
  EXPECT_EQ(analysis.coverage.events, 3u);
  EXPECT_EQ(analysis.totals.live_bytes, 20u);
}

TEST(TraceReaderTest, ABlockThatAnotherOneTookThePlaceOfIsLost) {
  std::string bytes[2];
  for (const bool later : {false, true}) {
    TraceBuilder trace;
    auto& a = trace.Thread(1, 100, "main");
    if (later) a.SkipBlocks(7);
    a.At(1000).Malloc(0x1010, 10).Flush();
    bytes[later] = trace.Build();
  }
  const Analysis analysis = OfAChangingFile(bytes[0], bytes[1]);
  EXPECT_EQ(analysis.coverage.events, 0u);
  EXPECT_EQ(analysis.coverage.lost_blocks, 1u);
  EXPECT_THAT(analysis.coverage.damage, HasSubstr("the file changed while it was read"));
}

TEST(TraceReaderTest, OfBlocksWithOneNumberTheLongestCounts) {
  for (const bool early_first : {true, false}) {
    TraceBuilder trace;
    auto& a = trace.Thread(1, 100, "main");
    const auto early = [&] { a.At(1000).Malloc(0x1010, 10).Early().Flush(1500); };
    const auto whole = [&] { a.At(1000).Malloc(0x1010, 10).Malloc(0x2010, 20).Flush(2000); };
    early_first ? early() : whole();
    a.SkipBlocks(-1u);
    early_first ? whole() : early();
    a.At(3000).Malloc(0x3010, 30).Flush(3500);
    trace.End(0, 5000);
    const Analysis analysis = Analyze(trace.Build()).analysis;
    EXPECT_EQ(analysis.coverage.events, 3u);
    EXPECT_EQ(analysis.totals.live_bytes, 60u);
    EXPECT_EQ(analysis.coverage.lost_blocks, 0u);
  }
}

TEST(TraceReaderTest, ALyingRingIsBoundedByItsCapacityAndTheFile) {
  for (const uint32_t committed :
       {uint32_t{0}, uint32_t{7}, uint32_t{16}, 0x7ffffff0u, 0xfffffff0u}) {
    TraceBuilder trace;
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 10).LeaveInRing(committed);
    const Analysis analysis = Analyze(trace.Build()).analysis;
    EXPECT_EQ(analysis.coverage.events, committed < 24 ? 0u : 1u) << committed;
  }
}

TEST(TraceReaderTest, BlocksMayLieInTheFileInAnyOrder) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.SkipBlocks(1).At(2000).Free(0x1010).Flush();
  a.SkipBlocks(-2u).At(1000).Malloc(0x1010, 10).Flush();
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.frees, 1u);
  EXPECT_EQ(analysis.coverage.unknown_frees, 0u);
  EXPECT_EQ(analysis.coverage.lost_blocks, 0u);
}

TEST(TraceReaderTest, ABadEventEndsItsBlockOnly) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Word(0).Malloc(0x2010, 20).Flush();
  a.At(2000).Malloc(0x3010, 30).Flush();
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.allocations, 2u);
  EXPECT_THAT(analysis.coverage.damage, HasSubstr("word 3 of the block is not an event"));
}

TEST(TraceReaderTest, AnEventThatIsLongerThanItsBlockIsBad) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Word(format::ExtendedHead(format::ExtendedType::kMmap, 60000)).Flush();
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_THAT(analysis.coverage.damage, HasSubstr("word 1 of the block is not an event"));
}

TEST(TraceReaderTest, UnknownKindsOfBlocksRecordsAndEventsAreSkipped) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Extended(static_cast<format::ExtendedType>(999), {1, 2, 3}).Malloc(0x1010, 10).Flush();
  format::BlockHeader header{};
  header.kind = static_cast<format::BlockKind>(77);
  trace.Block(header, "whatever");
  trace.Record([](format::RecordEncoder& r) {
    r.Begin(static_cast<format::RecordTag>(5000));
    r.Bytes("of the future");
    r.End();
  });
  trace.End(0, 2000);
  auto reader = Read(trace.Build());
  ASSERT_TRUE(reader.ok());
  const Analysis analysis = AnalyzeTrace(**reader, {})->analysis;
  EXPECT_EQ(analysis.totals.allocations, 1u);
  EXPECT_EQ((*reader)->statistics().unknown_blocks, 1u);
  EXPECT_FALSE(analysis.coverage.truncated);
}

TEST(TraceReaderTest, DroppedEventsAreCounted) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 10).Flush();
  a.Dropped(17).At(2000).Malloc(0x2010, 10).Flush();
  trace.Counter("missed_events", 3);
  EXPECT_EQ(Analyze(trace.Build()).analysis.coverage.dropped_events, 20u);
}

TEST(TraceReaderTest, ATraceWithoutItsProcessRecordIsRead) {
  TraceBuilder::Options options;
  options.process_record = false;
  TraceBuilder trace(options);
  trace.Thread(1).At(1000).Malloc(0x1010, 10).Flush();
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.allocations, 1u);
  EXPECT_THAT(CoverageNotes(analysis), testing::Contains(HasSubstr("process is missing")));
  EXPECT_EQ(analysis.process.pid, options.pid) << "of the header";
  EXPECT_FALSE(analysis.process.has_record);
  EXPECT_FALSE(analysis.process.imported());
}

// Durations are added to it everywhere, and a negative one is not 0, which an imported log has.
TEST(TraceReaderTest, AStartThatNoClockHadIsALateOne) {
  for (const uint64_t hostile : {UINT64_MAX, uint64_t{1} << 63, uint64_t{INT64_MAX}}) {
    TraceBuilder::Options options;
    options.start_realtime_ns = hostile;
    TraceBuilder trace(options);
    trace.Thread(1).At(1000).Malloc(0x1010, 10).Flush();
    const Analysis analysis = Analyze(trace.Build()).analysis;
    EXPECT_EQ(analysis.process.start_realtime_ns, int64_t{1} << 62) << hostile;
    EXPECT_FALSE(analysis.process.imported());
  }
}

}  // namespace
}  // namespace memtrace::report
