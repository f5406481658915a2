// Snapshots of traces that are written and packed meanwhile.

#include "report/run/trace_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "report/run/reader_lock.h"
#include "report/run/spool_directory.h"
#include "report/run/trace_follower.h"
#include "report/trace/live_trace.h"
#include "report/trace/trace_reader.h"
#include "tests/report/run/run_raw_trace.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void PauseMs(long ms) {
  const timespec pause = {0, ms * 1'000'000};
  nanosleep(&pause, nullptr);
}

uint64_t AllocatedBytes(const std::string& path) {
  struct stat info;
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

// By this process, so far; 0: the kernel does not tell.
uint64_t WrittenBytes() {
  std::ifstream file("/proc/self/io");
  std::string name;
  for (uint64_t bytes; file >> name >> bytes;) {
    if (name == "wchar:") return bytes;
  }
  return 0;
}

// Where copies go, for the time of a test.
class CopiesGoTo {
 public:
  explicit CopiesGoTo(const std::string& directory) {
    if (const char* before = getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", directory.c_str(), 1);
  }
  ~CopiesGoTo() { before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1); }

 private:
  std::string before_;
};

class TraceSnapshotTest : public testing::Test {
 protected:
  TraceSnapshotTest() {
    std::filesystem::create_directory(spool_);
    EXPECT_TRUE(SpoolDirectory::Open(spool_)->WriteRunRecord({directory_ / "out.mtr", 17}).ok());
    std::filesystem::create_directory(copies_);
  }

  struct Seen {
    uint64_t lost = 0, blocks = 0;
    std::string damage;
    std::vector<std::vector<uint64_t>> events;  // of each stream
    std::vector<std::string> notes;
  };

  static Seen Read(const std::string& name, bool may_lock = true) {
    const auto snapshot = TakeSnapshot(name, may_lock);
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    if (!snapshot.ok()) return {};
    const LiveTrace live(name, snapshot->source, snapshot->opened_ns);
    const auto reader = TraceReader::Open(name);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return {};
    Seen seen;
    std::vector<uint64_t> words;
    for (const ThreadStream& stream : (*reader)->streams()) {
      std::vector<uint64_t>& events = seen.events.emplace_back();
      for (const BlockRef& block : stream.blocks) {
        EXPECT_TRUE((*reader)->ReadEvents(stream, block, &words));
        seen.blocks += block.merged_before + 1;
        for (size_t i = 0; i < words.size(); i += format::EventWords(words[i])) {
          if (format::EventWords(words[i]) == 0) break;
          if (format::KindOf(words[i]) == format::EventKind::kTime) continue;
          events.insert(events.end(), &words[i], &words[i] + format::EventWords(words[i]));
        }
      }
    }
    seen.notes = (*reader)->metadata().notes;
    seen.lost = (*reader)->statistics().lost_blocks;
    seen.damage = (*reader)->damage();
    return seen;
  }

  // Of 60,000 events each, of one thread.
  static void AppendBlocks(uint32_t count, RawTrace* raw) {
    for (uint32_t sequence = 1; sequence <= count; ++sequence)
      raw->AppendEvents(1, sequence, RawTrace::Mallocs(60'000, 0x10000 * (sequence + 1)));
  }

  TempDir directory_;
  const std::string spool_ = directory_ / ".out.spool.abcdef", copies_ = directory_ / "copies";
  const std::string path_ = spool_ + "/app.17.3.mtr";
};

// Of a follower that takes nothing out while one reads, and of one that does.
class PackedMeanwhile : public TraceSnapshotTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(TraceSnapshot, PackedMeanwhile, testing::Bool());

TEST_P(PackedMeanwhile, NothingIsMissing) {
  constexpr uint32_t kThreads = 6, kBlocks = 400;
  const bool may_lock = GetParam();
  const CopiesGoTo copies(may_lock ? directory_ / "none" : copies_);
  RawTrace raw(path_, 17);
  raw.AppendNote("first");
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok()) << follower.status();
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> threads;
  for (uint32_t thread = 1; thread <= kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t sequence = 1; sequence <= kBlocks; ++sequence) {
        const std::vector<uint64_t> words = RawTrace::Mallocs(2000, 0x10000 * (sequence + 1));
        uint64_t offset;
        {
          const std::lock_guard lock(mutex);
          offset = raw.Reserve(words.size() * sizeof(words[0]));
        }
        const timespec pause = {0, static_cast<long>(offset / 64 * 7919 % 900) * 1000};
        nanosleep(&pause, nullptr);
        raw.PutEventsAt(offset, thread, sequence, words);
        ++written;
      }
    });
  }
  std::thread packs([&] {
    while (!stop) {
      EXPECT_TRUE((*follower)->Advance().ok());
      PauseMs(1);
    }
  });
  for (bool done = false; !done;) {
    const uint64_t before = written;
    done = before == kThreads * kBlocks;
    const Seen seen = Read(path_, may_lock);
    EXPECT_EQ(seen.lost, 0u);
    EXPECT_THAT(seen.damage, IsEmpty());
    EXPECT_GE(seen.blocks, before) << "what was written before";
    EXPECT_THAT(seen.notes, ElementsAre("first"));
    EXPECT_TRUE(std::filesystem::is_empty(copies_)) << "a name of a copy";
    PauseMs(5);
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  packs.join();
  EXPECT_TRUE((*follower)->Advance().ok());
  EXPECT_LT(AllocatedBytes(path_), raw.end() / 2) << "otherwise this tests nothing";
}

TEST_F(TraceSnapshotTest, NothingIsTakenOutWhileOneReads) {
  RawTrace raw(path_, 17);
  AppendBlocks(40, &raw);
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  const uint64_t before = AllocatedBytes(path_);
  {
    const CopiesGoTo nowhere(directory_ / "none");
    const auto snapshot = TakeSnapshot(path_);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    ASSERT_TRUE((*follower)->Advance().ok());
    EXPECT_EQ(AllocatedBytes(path_), before);
  }
  ASSERT_TRUE((*follower)->Advance().ok());
  EXPECT_LT(AllocatedBytes(path_), before);
}

// Who has read goes on for as long as it takes to look up names and to show the report.
TEST_F(TraceSnapshotTest, IsTakenOutWhenReadingIsOver) {
  RawTrace raw(path_, 17);
  AppendBlocks(40, &raw);
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  const uint64_t before = AllocatedBytes(path_);
  const CopiesGoTo nowhere(directory_ / "none");
  auto snapshot = TakeSnapshot(path_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const LiveTrace live(path_, snapshot->source, snapshot->opened_ns, snapshot->reading_is_over);
  const LiveTrace* const found = LiveTrace::Find(path_);
  ASSERT_NE(found, nullptr);
  found->ReadingIsOver();
  ASSERT_TRUE((*follower)->Advance().ok());
  EXPECT_LT(AllocatedBytes(path_), before);
}

// A report of some sites reads the raw trace alone, twice: no hole comes in between.
TEST_F(TraceSnapshotTest, NothingIsTakenOutOfARawTraceThatIsReadTwice) {
  RawTrace raw(path_, 17);
  AppendBlocks(40, &raw);
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  const uint64_t before = AllocatedBytes(path_);
  RawTraceLock lock(path_);
  ASSERT_TRUE((*follower)->Advance().ok());
  EXPECT_EQ(AllocatedBytes(path_), before);
  lock.ReadingIsOver();
  ASSERT_TRUE((*follower)->Advance().ok());
  EXPECT_LT(AllocatedBytes(path_), before);
  RawTraceLock none(directory_ / "none.mtr");
  none.ReadingIsOver();
}

// The file of what is packed is gone from its place, and the raw one: both are open still.
TEST_F(TraceSnapshotTest, IsReadWhenTheRunHasEndedMeanwhile) {
  RawTrace raw(path_, 17);
  raw.AppendEvents(1, 1, RawTrace::Mallocs(3, 0x5000));
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  ASSERT_TRUE((*follower)->Advance().ok());
  raw.AppendEvents(1, 2, RawTrace::Mallocs(2, 0x6000));
  const auto snapshot = TakeSnapshot(path_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_TRUE((*follower)->Finish(nullptr).ok());
  ASSERT_TRUE((*follower)->Publish(directory_ / "out.mtr", true).ok());
  const LiveTrace live(path_, snapshot->source, snapshot->opened_ns);
  const auto reader = TraceReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->streams().at(0).blocks.back().sequence, 2u);
  EXPECT_FALSE((*reader)->cut());
  EXPECT_EQ(TakeSnapshot(path_).status().code(), absl::StatusCode::kNotFound);
}

// A private ring that was written in part while its thread went on: the thread writes all of it
// under the same number.
TEST_F(TraceSnapshotTest, TheWholeOfABlockIsTakenAndNotItsPackedBeginning) {
  RawTrace raw(path_, 17);
  const std::vector<uint64_t> whole = RawTrace::Mallocs(5, 0x5000);
  raw.AppendEvents(1, 1, {whole.begin(), whole.begin() + 4}, 0, format::kBlockEarly);
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  ASSERT_TRUE((*follower)->Finish(nullptr).ok());  // it is in the packed file
  raw.AppendEvents(1, 1, whole);
  EXPECT_THAT(Read(path_).events, ElementsAre(whole));
  EXPECT_THAT(Read(path_, false).events, ElementsAre(whole));
  // And so where a run is finished that was interrupted.
  const auto resumed = TraceFollower::Resume(path_);
  ASSERT_TRUE(resumed.ok());
  ASSERT_TRUE((*resumed)->Finish(nullptr).ok());
  const auto reader = TraceReader::Open(*(*resumed)->Publish(directory_ / "out.mtr", true));
  ASSERT_TRUE(reader.ok());
  std::vector<uint64_t> words;
  const ThreadStream& stream = (*reader)->streams().at(0);
  ASSERT_TRUE((*reader)->ReadEvents(stream, stream.blocks.at(0), &words));
  EXPECT_EQ(words, whole);
}

// Rings are copied when nothing is packed of them yet; then their blocks are packed.
TEST_F(TraceSnapshotTest, ARingIsTakenWhereItsBlockIsNot) {
  RawTrace raw(path_, 17);
  raw.AppendRing(1, 1, RawTrace::Mallocs(2, 0x5000));
  raw.AppendRing(2, 2, RawTrace::Mallocs(3, 0x7000));
  raw.AppendEvents(1, 1, RawTrace::Mallocs(4, 0x5000));
  raw.AppendEvents(2, 1, RawTrace::Mallocs(1, 0x9000));
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  ASSERT_TRUE((*follower)->Advance().ok());
  const Seen seen = Read(path_);
  EXPECT_EQ(seen.events.at(0), RawTrace::Mallocs(4, 0x5000));
  std::vector<uint64_t> both = RawTrace::Mallocs(1, 0x9000);
  for (const uint64_t word : RawTrace::Mallocs(3, 0x7000)) both.push_back(word);
  EXPECT_EQ(seen.events.at(1), both);
}

// Read in place a ring has what came since, and the blocks from before that are behind all others.
TEST_F(TraceSnapshotTest, ARingThatIsFilledAnewMeanwhileLeavesNoHole) {
  RawTrace raw(path_, 17);
  const uint64_t block = raw.end();
  raw.AppendRing(1, 1, RawTrace::Mallocs(2, 0x5000));
  raw.AppendEvents(2, 1, RawTrace::Mallocs(1, 0x9000));
  auto follower = TraceFollower::Open(path_);
  ASSERT_TRUE(follower.ok());
  ASSERT_TRUE((*follower)->Advance().ok());
  const auto snapshot = TakeSnapshot(path_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  raw.AppendEvents(1, 1, RawTrace::Mallocs(4, 0x5000));
  const uint64_t ring = (block + sizeof(format::BlockHeader) + format::kRingAlignment - 1) /
                        format::kRingAlignment * format::kRingAlignment;
  const uint32_t sequence = 2;
  raw.Write(ring + offsetof(format::RingHeader, sequence), &sequence, sizeof(sequence));
  const LiveTrace live(path_, snapshot->source, snapshot->opened_ns);
  const auto reader = TraceReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->statistics().lost_blocks, 0u);
  EXPECT_EQ((*reader)->streams().at(0).blocks.size(), 2u);
}

// To be copied it would have to have a place.
TEST_F(TraceSnapshotTest, WhatNobodyPacksIsReadInPlace) {
  const CopiesGoTo nowhere(directory_ / "none");
  std::filesystem::create_directory(directory_ / "x.spool.d");
  for (const char* const name : {"raw.mtr", "x.spool.d/raw.mtr"}) {
    RawTrace raw(directory_ / name, 17);
    raw.AppendEvents(1, 1, RawTrace::Mallocs(3, 0x5000));
    EXPECT_THAT(Read(raw.path()).events, ElementsAre(RawTrace::Mallocs(3, 0x5000)));
  }
}

// As by a run that has no thread for it, or no room: it may begin at any time.
TEST_F(TraceSnapshotTest, WhatIsNotPackedYetIsCopiedOnce) {
  const CopiesGoTo copies(copies_);
  RawTrace raw(path_, 17);
  for (uint32_t sequence = 1; sequence <= 8; ++sequence)
    raw.AppendEvents(1, sequence, RawTrace::Mallocs(60'000, 0x10000 * (sequence + 1)));
  const uint64_t before = WrittenBytes();
  if (before == 0) GTEST_SKIP() << "what is written is not counted here";
  const auto snapshot = TakeSnapshot(path_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_GE(WrittenBytes() - before, snapshot->source->Size()) << "otherwise this tests nothing";
  EXPECT_LT(WrittenBytes() - before, 2 * snapshot->source->Size());
}

}  // namespace
}  // namespace memtrace::report
