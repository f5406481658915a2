// Following raw traces that grow, stall, break off and belong to processes that
// end in any order. The traces are written by the test, step by step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "report/run/process_watch.h"
#include "report/run/trace_follower.h"
#include "tests/report/run/run_processes.h"

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint64_t AllocatedBytes(const std::string& path) {
  struct stat info;
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

class TraceFollowerTest : public ::testing::Test {
 protected:
  std::string Raw(uint32_t pid) { return directory_ / RawName("prog", pid, 5); }
  TempDir directory_;
};

TEST_F(TraceFollowerTest, WaitsForTheHeader) {
  RawTrace raw(Raw(42), 42, /*with_header=*/false);
  EXPECT_TRUE(absl::IsFailedPrecondition(TraceFollower::Open(raw.path()).status()));
  raw.WriteHeader();
  const auto follower = TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower.ok()) << follower.status();
  EXPECT_EQ((*follower)->pid(), 42u);
  EXPECT_EQ((*follower)->program(), "prog");
  EXPECT_EQ((*follower)->start_ns(), 5u);
}

TEST_F(TraceFollowerTest, RefusesAFileThatIsNoTrace) {
  const int fd = open(Raw(1).c_str(), O_WRONLY | O_CREAT, 0600);
  const std::string text(100, 'x');
  ASSERT_EQ(write(fd, text.data(), text.size()), 100);
  close(fd);
  const auto follower = TraceFollower::Open(Raw(1));
  EXPECT_FALSE(follower.ok());
  EXPECT_THAT(std::string(follower.status().message()), HasSubstr(Raw(1)));
}

TEST_F(TraceFollowerTest, PacksWhatIsThereAndThenTheRest) {
  RawTrace raw(Raw(42), 42);
  raw.AppendNote("start");
  raw.AppendEvents(1, 1, RawTrace::Mallocs(10, 0x1000));
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_EQ(follower->counts().allocations, 10u);
  raw.AppendEvents(2, 1, RawTrace::Mallocs(5, 0x9000), /*dropped=*/3);
  raw.AppendEvents(1, 2, RawTrace::Mallocs(7, 0x5000));
  ASSERT_TRUE(follower->Advance().ok());
  ASSERT_TRUE(follower->Finish(nullptr).ok());
  EXPECT_EQ(follower->counts().allocations, 22u);
  EXPECT_EQ(follower->counts().dropped_events, 3u);
  const auto name = follower->Publish(directory_ / "out.mtr", true);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_THAT(FilesIn(directory_), ElementsAre("out.mtr"));

  const PackedTrace packed = PackedTrace::Read(*name);
  EXPECT_TRUE(packed.packed);
  EXPECT_EQ(packed.pid, 42u);
  EXPECT_EQ(packed.gaps, 0u);
  EXPECT_EQ(packed.dropped, 3u);
  EXPECT_THAT(packed.notes, ElementsAre("start"));
  EXPECT_EQ(packed.events.at(1), RawTrace::Mallocs(10, 0x1000) + RawTrace::Mallocs(7, 0x5000));
  EXPECT_EQ(packed.events.at(2), RawTrace::Mallocs(5, 0x9000));
}

TEST_F(TraceFollowerTest, TakesABlockThatIsWrittenAfterTheOnesBehindIt) {
  RawTrace raw(Raw(42), 42);
  const Words late = RawTrace::Mallocs(4, 0x1000);
  const uint64_t hole = raw.Reserve(late.size() * 8);
  raw.AppendEvents(2, 1, RawTrace::Mallocs(2, 0x8000));
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  raw.PutEventsAt(hole, 1, 1, late);
  ASSERT_TRUE(follower->Advance().ok());
  ASSERT_TRUE(follower->Finish(nullptr).ok());
  const PackedTrace packed = PackedTrace::Read(*follower->Publish(directory_ / "out.mtr", true));
  EXPECT_EQ(packed.events.at(1), late);
  EXPECT_EQ(packed.events.at(2), RawTrace::Mallocs(2, 0x8000));
}

TEST_F(TraceFollowerTest, StepsOverABlockThatWasNeverWritten) {
  RawTrace raw(Raw(42), 42);
  raw.Reserve(4096);
  raw.AppendEvents(1, 2, RawTrace::Mallocs(2, 0x8000));
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  ASSERT_TRUE(follower->Finish(nullptr).ok());
  const PackedTrace packed = PackedTrace::Read(*follower->Publish(directory_ / "out.mtr", true));
  EXPECT_EQ(packed.events.at(1), RawTrace::Mallocs(2, 0x8000));
}

TEST_F(TraceFollowerTest, RecoversTheRingOfAProcessThatWasKilled) {
  RawTrace raw(Raw(42), 42);
  raw.AppendRing(1, 2, RawTrace::Mallocs(3, 0x7000));
  raw.AppendEvents(1, 1, RawTrace::Mallocs(2, 0x1000));
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_EQ(follower->counts().allocations, 2u) << "a live ring is not touched";
  ASSERT_TRUE(follower->Finish(nullptr).ok());
  EXPECT_EQ(follower->counts().allocations, 5u);
  const PackedTrace packed = PackedTrace::Read(*follower->Publish(directory_ / "out.mtr", true));
  EXPECT_EQ(packed.events.at(1), RawTrace::Mallocs(2, 0x1000) + RawTrace::Mallocs(3, 0x7000));
}

TEST_F(TraceFollowerTest, RecordsHowTheProcessEnded) {
  RawTrace raw(Raw(42), 42);
  auto follower = *TraceFollower::Open(raw.path());
  ProgramEnd end;
  end.signaled = true;
  end.status = SIGKILL;
  end.wall_ns = 123;
  end.cpu_ns = 456;
  end.peak_rss_bytes = 789;
  ASSERT_TRUE(follower->Finish(&end).ok());
  const PackedTrace packed = PackedTrace::Read(*follower->Publish(directory_ / "out.mtr", true));
  EXPECT_THAT(packed.observed_end, ElementsAre(2, SIGKILL, 123, 456, 789, 0));
}

TEST_F(TraceFollowerTest, KnowsAnExecFromAnExecThatFailed) {
  RawTrace raw(Raw(42), 42);
  raw.AppendEnd(format::EndReason::kExec);
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_TRUE(follower->counts().ended_by_exec);
  raw.AppendEvents(1, 1, RawTrace::Mallocs(1, 0x1000));
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_FALSE(follower->counts().ended_by_exec);
}

TEST_F(TraceFollowerTest, AnExecWhoseFailureIsToldFailsByThatAlone) {
  RawTrace raw(Raw(42), 42);
  raw.AppendExec(7);
  raw.AppendEvents(1, 1, RawTrace::Mallocs(1, 0x1000));  // of a thread that went on
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_TRUE(follower->counts().ended_by_exec);
  raw.AppendExecFailed(7);
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_FALSE(follower->counts().ended_by_exec);
  raw.AppendExec(9);
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_TRUE(follower->counts().ended_by_exec);
}

TEST_F(TraceFollowerTest, HandsBackTheSpaceOfPackedEventsButNotRings) {
  RawTrace raw(Raw(42), 42);
  raw.AppendNote("first");
  WriteMuch(&raw, 1, 20);
  raw.AppendRing(2, 1, RawTrace::Mallocs(3, 0x7000));
  WriteMuch(&raw, 21, 40);
  const uint64_t before = AllocatedBytes(raw.path());
  auto follower = *TraceFollower::Open(raw.path());
  ASSERT_TRUE(follower->Advance().ok());
  EXPECT_LT(AllocatedBytes(raw.path()), before / 4);
  EXPECT_EQ(std::filesystem::file_size(raw.path()), raw.end()) << "the writer has its offsets";
  raw.AppendEvents(1, 41, RawTrace::Mallocs(1, 0x1000));
  ASSERT_TRUE(follower->Finish(nullptr).ok());
  const PackedTrace packed = PackedTrace::Read(*follower->Publish(directory_ / "out.mtr", true));
  EXPECT_EQ(packed.events.at(1), MuchWords(1, 40) + RawTrace::Mallocs(1, 0x1000));
  EXPECT_EQ(packed.events.at(2), RawTrace::Mallocs(3, 0x7000));
}

TEST_F(TraceFollowerTest, LosesNothingWhenItDiesAndIsResumed) {
  RawTrace raw(Raw(42), 42);
  raw.AppendNote("first");
  raw.AppendNote("first");  // the same text twice is two records
  raw.AppendRing(2, 2, RawTrace::Mallocs(3, 0x7000));
  raw.AppendEvents(2, 1, RawTrace::Mallocs(2, 0x6000), /*dropped=*/4);
  WriteMuch(&raw, 1, 40);
  {
    auto dies = *TraceFollower::Open(raw.path());
    ASSERT_TRUE(dies->Advance().ok());
  }
  EXPECT_LT(AllocatedBytes(raw.path()), 30u << 20) << "otherwise this tests nothing";
  raw.AppendNote("second");
  WriteMuch(&raw, 41, 43);
  const auto resumed = TraceFollower::Resume(raw.path());
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  ASSERT_TRUE((*resumed)->Finish(nullptr).ok());
  const auto name = (*resumed)->Publish(directory_ / "out.mtr", true);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_THAT(FilesIn(directory_), ElementsAre("out.mtr"));
  const PackedTrace packed = PackedTrace::Read(*name);
  EXPECT_EQ(packed.pid, 42u);
  EXPECT_THAT(packed.notes, ElementsAre("first", "first", "second"));
  EXPECT_EQ(packed.events.at(1), MuchWords(1, 43));
  EXPECT_EQ(packed.events.at(2), RawTrace::Mallocs(2, 0x6000) + RawTrace::Mallocs(3, 0x7000));
  EXPECT_EQ(packed.dropped, 4u);
}

TEST_F(TraceFollowerTest, ResumesAfterAPackedPartThatIsCutAnywhere) {
  RawTrace raw(Raw(42), 42);
  raw.AppendNote("note");
  for (uint32_t i = 1; i <= 5; ++i) raw.AppendEvents(1, i, RawTrace::Mallocs(20, i << 16));
  Words all;
  for (uint32_t i = 1; i <= 5; ++i) all = all + RawTrace::Mallocs(20, i << 16);
  std::string whole;
  {
    auto first = *TraceFollower::Open(raw.path());
    ASSERT_TRUE(first->Finish(nullptr).ok());
    auto source = *FileSource::Open(raw.path() + ".packed");
    whole.resize(source->Size());
    ASSERT_TRUE(source->ReadAt(0, {reinterpret_cast<uint8_t*>(whole.data()), whole.size()}).ok());
  }
  for (size_t cut = 0; cut <= whole.size(); cut += 8) {
    std::filesystem::remove(raw.path() + ".packed.resumed");
    const int fd = open((raw.path() + ".packed").c_str(), O_WRONLY | O_TRUNC | O_CREAT, 0600);
    ASSERT_EQ(write(fd, whole.data(), cut), static_cast<ssize_t>(cut));
    close(fd);
    auto resumed = TraceFollower::Resume(raw.path());
    ASSERT_TRUE(resumed.ok()) << resumed.status() << " cut at " << cut;
    ASSERT_TRUE((*resumed)->Finish(nullptr).ok());
    const PackedTrace packed = PackedTrace::Read(raw.path() + ".packed.resumed");
    ASSERT_EQ(packed.events.at(1), all) << "cut at " << cut;
    ASSERT_THAT(packed.notes, ElementsAre("note")) << "cut at " << cut;
  }
}

TEST_F(TraceFollowerTest, KeepsTheRawTraceWhenTheDiskIsFull) {
  RawTrace raw(Raw(42), 42);
  WriteMuch(&raw, 1, 4);
  auto follower = *TraceFollower::Open(raw.path());
  rlimit before, tiny;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  tiny = before;
  tiny.rlim_cur = 256;  // the nearest thing to a full disk that needs no mount
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tiny), 0);
  const absl::Status status = follower->Finish(nullptr);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(follower->Finish(nullptr).ok()) << "a failure stays";
  auto resumed = TraceFollower::Resume(raw.path());
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  ASSERT_TRUE((*resumed)->Finish(nullptr).ok());
  EXPECT_EQ(PackedTrace::Read(raw.path() + ".packed.resumed").events.at(1), MuchWords(1, 4));
}

TEST(ProcessWatchTest, SeesAProcessEnd) {
  TempDir directory;
  const int fd = open((directory / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  Sleeper sleeper;
  {
    const int read_only = open((directory / "f").c_str(), O_RDONLY | O_CLOEXEC);
    close(fd);
    const ProcessWatch watch(sleeper.pid(), read_only);
    EXPECT_FALSE(watch.Ended());
    sleeper.End();
    EXPECT_TRUE(watch.Ended());
    close(read_only);
  }
}

TEST(ProcessWatchTest, KnowsTheProcessIsNotGoneWhileItsRingIsMapped) {
  TempDir directory;
  const std::string path = directory / "f";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  void* ring = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(ring, MAP_FAILED);
  close(fd);
  const int read_only = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ProcessWatch watch(EndedPid(), read_only);
  EXPECT_FALSE(watch.Ended()) << "the pid may have been that of another namespace";
  munmap(ring, 4096);
  EXPECT_TRUE(watch.Ended());
  close(read_only);
}

}  // namespace
}  // namespace memtrace::report
