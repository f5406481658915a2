// The pressure lane without a program: recorded kernel files, records, the verdict on a SIGKILL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "format/record_decoder.h"
#include "report/model/timeline.h"
#include "report/pressure/freezer.h"
#include "report/pressure/kernel_files.h"
#include "report/pressure/memory_cgroup.h"
#include "report/pressure/oom_watch.h"
#include "report/pressure/pressure_lane.h"
#include "report/pressure/pressure_probe.h"
#include "report/pressure/pressure_records.h"
#include "report/pressure/pressure_sampler.h"
#include "tests/report/run/run_raw_trace.h"

namespace memtrace::report::pressure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// A machine that is written down: process 42 and its control group.
class RecordedMachine : public ::testing::Test {
 protected:
  void SetUp() override { WriteStat("42", "S"); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path at = root_ / path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at, std::ios::trunc) << text;
  }
  // `flags`: 0x400100, or with PF_EXITING.
  void WriteStat(const std::string& process, const std::string& state, uint64_t flags = 4194560) {
    Write("proc/" + process + "/stat",
          "42 (a ) b) " + state + " 1 42 42 0 -1 " + std::to_string(flags) +
              " 111 0 22 0 5 6 0 0 20 0 1 0 77 0 0\n");
  }
  void WriteVmstat(uint64_t oom_kill) {
    Write("proc/vmstat", "nr_free_pages 1\npswpin 7\npswpout 8\npgmajfault 9\n"
                         "workingset_refault_anon 10\nworkingset_refault_file 11\npgscan_direct 12\n"
                         "pgscan_direct_throttle 99\noom_kill " + std::to_string(oom_kill) + "\n");
  }
  void Version2() {
    Write("proc/self/mountinfo",
          "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    Write("proc/42/cgroup", "0::/user.slice/app\n");
    Write("sys/fs/cgroup/user.slice/memory.max", "33554432\n");
    Write("sys/fs/cgroup/user.slice/app/memory.max", "max\n");
    Write("sys/fs/cgroup/user.slice/app/memory.current", "1048576\n");
    Write("sys/fs/cgroup/user.slice/app/memory.swap.current", "4096\n");
    Write("sys/fs/cgroup/user.slice/app/memory.pressure",
          "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=45\n");
    Write("sys/fs/cgroup/user.slice/app/memory.stat",
          "anon 1\npgmajfault 3\nworkingset_refault_anon 4\nworkingset_refault_file 5\n");
    WriteEvents(0);
  }
  void WriteEvents(uint64_t kills) {
    const std::string events = "low 0\nhigh 1\nmax 2\noom 3\noom_kill " + std::to_string(kills) +
                               "\noom_group_kill 0\n";
    Write("sys/fs/cgroup/user.slice/app/memory.events", events);
    Write("sys/fs/cgroup/user.slice/app/memory.events.local", events);
  }
  void Version1(uint64_t kills) {
    Write("proc/self/mountinfo",
          "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    Write("proc/42/cgroup", "4:memory:/job\n0::/\n");
    Write("sys/fs/cgroup/unified/cgroup.procs", "");
    Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "67108864\n");
    Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n");
    Write("sys/fs/cgroup/memory/job/memory.memsw.usage_in_bytes", "1500\n");
    Write("sys/fs/cgroup/memory/job/memory.failcnt", "6\n");
    Write("sys/fs/cgroup/memory/job/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 0\noom_kill " + std::to_string(kills) + "\n");
  }
  void Process() {
    Write("proc/42/status", "Name:\tRssAnon: 9 kB\nVmHWM:\t    300 kB\nVmPTE:\t      40 kB\n"
                            "VmSwap:\t       8 kB\nRssAnon:\t    100 kB\nRssFile:\t      60 kB\n"
                            "RssShmem:\t       4 kB\n");
    Write("proc/42/smaps_rollup",
          "55-7f ---p 00000000 00:00 0 [rollup]\nRss:  164 kB\nPss:  99 kB\nPss_Dirty: 1 kB\n"
          "Shared_Clean: 3 kB\nShared_Dirty: 4 kB\nPrivate_Clean: 5 kB\nPrivate_Dirty: 6 kB\n"
          "Anonymous: 7 kB\nAnonHugePages: 2048 kB\n");
    Write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\nSwapFree: 10 kB\n");
    Write("proc/pressure/memory", "some avg10=0.00 total=1000\nfull avg10=0.00 total=200\n");
    WriteVmstat(0);
  }

  KernelFiles files() const { return KernelFiles(root_.path()); }
  std::string log() const { return root_ / "kmsg"; }

  TempDir root_;
};

TEST(KernelFilesTest, TakesANumberByItsWholeName) {
  const std::string text = "oom_kill_disable 4\noom_kill 5\nRss:   12 kB\nName:\tx\n";
  EXPECT_EQ(NumberAfter(text, "oom_kill"), 5u);
  EXPECT_EQ(NumberAfter(text, "Rss:"), 12u * 1024);
  EXPECT_EQ(NumberAfter(text, "Name:"), std::nullopt);
  EXPECT_EQ(NumberAfter(text, "Rs"), std::nullopt);
  EXPECT_EQ(OnlyNumber("max\n"), std::nullopt);
  EXPECT_EQ(OnlyNumber(" 7\n"), 7u);
}

TEST_F(RecordedMachine, FindsTheGroupOfVersionTwoAndTheLimitAroundIt) {
  Version2();
  const auto cgroup = FindMemoryCgroup(files(), 42);
  ASSERT_TRUE(cgroup.ok()) << cgroup.status();
  EXPECT_EQ(cgroup->version, 2);
  EXPECT_EQ(cgroup->path, "/user.slice/app");
  const CgroupFigures figures = ReadCgroup(files(), *cgroup);
  EXPECT_EQ(figures.current_bytes, 1048576u);
  EXPECT_EQ(figures.limit_bytes, 33554432u) << "memory.max of the group around it";
  EXPECT_EQ(figures.swap_bytes, 4096u);
  EXPECT_EQ(figures.high, 1u);
  EXPECT_EQ(figures.max, 2u);
  EXPECT_EQ(figures.oom, 3u);
  EXPECT_EQ(figures.oom_kill, 0u);
  EXPECT_EQ(figures.stall_some_us, 123u);
  EXPECT_EQ(figures.stall_full_us, 45u);
}

// No state of its threads tells of it.
TEST_F(RecordedMachine, IsFrozenByVersionTwo) {
  Version2();
  EXPECT_FALSE(IsFrozen(files(), 42)) << "before Linux 5.2 nothing is said";
  Write("sys/fs/cgroup/user.slice/app/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_FALSE(IsFrozen(files(), 42));
  Write("sys/fs/cgroup/user.slice/app/cgroup.events", "populated 1\nfrozen 1\n");
  EXPECT_TRUE(IsFrozen(files(), 42));
  EXPECT_FALSE(IsFrozen(files(), 43)) << "there is none";
}

TEST_F(RecordedMachine, IsFrozenByVersionOne) {
  Write("proc/self/mountinfo",
        "34 31 0:31 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  Write("proc/42/cgroup", "6:freezer:/docker/job\n4:memory:/other\n0::/\n");
  Write("sys/fs/cgroup/freezer/docker/job/freezer.state", "THAWED\n");
  EXPECT_FALSE(IsFrozen(files(), 42));
  Write("sys/fs/cgroup/freezer/docker/job/freezer.state", "FROZEN\n");
  EXPECT_TRUE(IsFrozen(files(), 42));
}

TEST_F(RecordedMachine, FindsTheGroupOfVersionOneBesideAnEmptyVersionTwo) {
  Version1(3);
  const auto cgroup = FindMemoryCgroup(files(), 42);
  ASSERT_TRUE(cgroup.ok()) << cgroup.status();
  EXPECT_EQ(cgroup->version, 1);
  const CgroupFigures figures = ReadCgroup(files(), *cgroup);
  EXPECT_EQ(figures.current_bytes, 1000u);
  EXPECT_EQ(figures.swap_bytes, 500u);
  EXPECT_EQ(figures.limit_bytes, 67108864u) << "the root's is none";
  EXPECT_EQ(figures.max, 6u);
  EXPECT_EQ(figures.oom_kill, 3u);
  EXPECT_EQ(figures.high, std::nullopt);
}

TEST_F(RecordedMachine, FindsTheGroupInAContainerThatMountsItsOwnPart) {
  Version1(0);
  Write("proc/self/mountinfo",
        "35 31 0:32 /docker/a\\040b /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  Write("proc/42/cgroup", "4:memory:/docker/a b\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  const auto cgroup = FindMemoryCgroup(files(), 42);
  ASSERT_TRUE(cgroup.ok()) << cgroup.status();
  EXPECT_EQ(cgroup->directory, "/sys/fs/cgroup/memory");
}

TEST_F(RecordedMachine, SaysThatThereIsNoGroup) {
  Write("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("proc/42/cgroup", "0::/\n");
  EXPECT_THAT(std::string(FindMemoryCgroup(files(), 42).status().message()),
              HasSubstr("no memory control group"));
}

TEST_F(RecordedMachine, ReadsEveryColumnThatIsThere) {
  Version2();
  Process();
  PressureProbe probe(files(), 42);
  PressureSample sample;
  probe.ReadCheap(&sample);
  probe.ReadCostly(&sample);
  EXPECT_EQ(sample[Column::kRssAnon], 100u * 1024);
  EXPECT_EQ(sample[Column::kRssFile], 60u * 1024);
  EXPECT_EQ(sample[Column::kRssShmem], 4u * 1024);
  EXPECT_EQ(sample[Column::kSwap], 8u * 1024);
  EXPECT_EQ(sample[Column::kPeakRss], 300u * 1024);
  EXPECT_EQ(sample[Column::kMinorFaults], 111u);
  EXPECT_EQ(sample[Column::kMajorFaults], 22u);
  EXPECT_EQ(sample[Column::kRollupPss], 99u * 1024);
  EXPECT_EQ(sample[Column::kRollupShared], 7u * 1024);
  EXPECT_EQ(sample[Column::kRollupHuge], 2048u * 1024);
  EXPECT_EQ(sample[Column::kSwapIn], 7u);
  EXPECT_EQ(sample[Column::kScanDirect], 12u);
  EXPECT_EQ(sample[Column::kStallSome], 1000u);
  EXPECT_EQ(sample[Column::kCgroupRefaultFile], 5u);
  EXPECT_FALSE(sample.known(Column::kRollupLocked)) << "not in the file";
  EXPECT_FALSE(sample.known(Column::kTreeProcesses)) << "no children file";
  EXPECT_THAT(probe.Notes(), IsEmpty());
}

TEST_F(RecordedMachine, SaysOnceWhatCannotBeRead) {
  Version2();
  Process();
  std::filesystem::remove(root_ / "proc/pressure/memory");
  std::filesystem::remove(root_ / "proc/42/smaps_rollup");
  PressureProbe probe(files(), 42);
  for (int i = 0; i < 3; ++i) {
    PressureSample sample;
    probe.ReadCheap(&sample);
    probe.ReadCostly(&sample);
    EXPECT_FALSE(sample.known(Column::kStallSome));
    EXPECT_TRUE(sample.known(Column::kRssAnon));
  }
  EXPECT_THAT(probe.Notes(), ElementsAre(HasSubstr("/proc/PID/smaps_rollup cannot be read"),
                                         HasSubstr("/proc/pressure/memory cannot be read")));
}

TEST_F(RecordedMachine, KeepsTheGroupOfAProcessThatHasEnded) {
  Version2();
  Process();
  PressureProbe probe(files(), 42);
  PressureSample before, after;
  probe.ReadCheap(&before);
  std::filesystem::remove_all(root_ / "proc/42");
  WriteEvents(1);
  probe.ReadCheap(&after);
  EXPECT_FALSE(after.known(Column::kRssAnon));
  EXPECT_EQ(after[Column::kCgroupOomKill], 1u);
  EXPECT_THAT(probe.Notes(), IsEmpty()) << "that it ended is no news";
}

// Version 1 shows whoever exits in the root group.
TEST_F(RecordedMachine, KeepsTheGroupOfAMainThreadThatExits) {
  Version1(3);
  Process();
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "9999\n");
  PressureProbe probe(files(), 42);
  PressureSample before;
  probe.ReadCheap(&before);
  EXPECT_EQ(before[Column::kCgroupLimit], 67108864u);
  Write("proc/42/cgroup", "4:memory:/\n0::/\n");
  const std::pair<const char*, uint64_t> ends[] = {{"Z", 4194560}, {"X", 4194560}, {"R", 4194564}};
  for (const auto& [state, flags] : ends) {
    WriteStat("42", state, flags);
    PressureSample after;
    probe.ReadCheap(&after);
    EXPECT_EQ(probe.cgroup()->path, "/job") << state;
    EXPECT_EQ(after[Column::kCgroupCurrent], 1000u) << state;
    EXPECT_EQ(after[Column::kCgroupLimit], 67108864u) << state;
    EXPECT_EQ(after[Column::kCgroupOomKill], 3u) << state;
  }
  EXPECT_THAT(probe.Notes(), IsEmpty());
}

TEST_F(RecordedMachine, AsksAThreadThatLivesForTheGroup) {
  Version1(3);
  Process();
  Write("proc/42/cgroup", "4:memory:/\n0::/\n");
  WriteStat("42", "Z");
  EXPECT_FALSE(FindMemoryCgroup(files(), 42).ok()) << "no thread lives";
  for (const char* thread : {"42", "43"}) {
    WriteStat(std::string("42/task/") + thread, "Z");
    Write(std::string("proc/42/task/") + thread + "/cgroup", "4:memory:/\n0::/\n");
  }
  EXPECT_FALSE(FindMemoryCgroup(files(), 42).ok()) << "no thread lives";
  WriteStat("42/task/44", "S");
  Write("proc/42/task/44/cgroup", "4:memory:/job\n0::/\n");
  PressureProbe probe(files(), 42);
  PressureSample sample;
  probe.ReadCheap(&sample);
  ASSERT_TRUE(probe.cgroup().has_value());
  EXPECT_EQ(probe.cgroup()->path, "/job");
  OomWatch watch(files(), 42, "");
  Version1(4);
  EXPECT_EQ(watch.kills_in_group(), 1u);
}

TEST_F(RecordedMachine, KnowsAnOomKillByTheCountOfTheGroup) {
  Version2();
  Process();
  OomWatch watch(files(), 42, "");
  WriteEvents(1);
  WriteVmstat(1);
  const Kill kill = watch.Judge();
  EXPECT_EQ(kill.verdict, format::KillVerdict::kOomKiller);
  EXPECT_EQ(kill.why, "oom_kill of the control group /user.slice/app went up from 0 to 1.");
  EXPECT_EQ(kill.cgroup, "/user.slice/app");
  EXPECT_EQ(kill.limit_bytes, 33554432u);
}

TEST_F(RecordedMachine, KnowsAnOomKillInVersionOne) {
  Version1(4);
  WriteVmstat(4);
  OomWatch watch(files(), 42, "");
  Version1(5);
  EXPECT_EQ(watch.Judge().verdict, format::KillVerdict::kOomKiller);
  EXPECT_EQ(watch.kills_in_group(), 1u);
}

TEST_F(RecordedMachine, KnowsAnotherSigkillByCountsThatStoodStill) {
  Version2();
  Process();
  OomWatch watch(files(), 42, "");
  EXPECT_EQ(watch.Judge().verdict, format::KillVerdict::kNotOomKiller);
}

TEST_F(RecordedMachine, DoesNotKnowWhomElsewhereTheOomKillerTook) {
  Version2();
  Process();
  OomWatch watch(files(), 42, "");
  WriteVmstat(1);
  const Kill kill = watch.Judge();
  EXPECT_EQ(kill.verdict, format::KillVerdict::kNotKnown);
  EXPECT_THAT(kill.why, HasSubstr("of the program's control group did not"));
}

TEST_F(RecordedMachine, DoesNotKnowWhereNothingCanBeRead) {
  OomWatch watch(files(), 42, "");
  EXPECT_EQ(watch.Judge().verdict, format::KillVerdict::kNotKnown);
}

TEST_F(RecordedMachine, TakesTheWordOfTheKernelLog) {
  Version2();
  Process();
  Write("kmsg", "3,9,1,-;Out of memory: Killed process 42 (earlier)\n");
  OomWatch ours(files(), 42, log()), others(files(), 42, log());
  WriteEvents(1);
  WriteVmstat(1);
  std::ofstream(log(), std::ios::app)
      << "3,10,2,-;Memory cgroup out of memory: Killed process 420 (x) total-vm:1kB\n";
  EXPECT_EQ(others.Judge().verdict, format::KillVerdict::kNotOomKiller)
      << "420 was killed; what was before the start does not count";
  std::ofstream(log(), std::ios::app)
      << "3,11,2,-;Memory cgroup out of memory: Killed process 42 (x) total-vm:1kB\n";
  const Kill kill = ours.Judge();
  EXPECT_EQ(kill.verdict, format::KillVerdict::kOomKiller);
  EXPECT_THAT(kill.why, HasSubstr("kernel log"));
}

TEST_F(RecordedMachine, FollowsAProgramIntoAnotherGroup) {
  Version2();
  Process();
  OomWatch watch(files(), 42, "");
  Write("proc/42/cgroup", "0::/other\n");
  Write("sys/fs/cgroup/other/memory.current", "1\n");
  Write("sys/fs/cgroup/other/memory.events", "oom_kill 7\n");
  PressureProbe probe(files(), 42);
  PressureSample sample;
  probe.ReadCheap(&sample);
  watch.Follow(probe.cgroup());
  Write("sys/fs/cgroup/other/memory.events", "oom_kill 8\n");
  WriteVmstat(1);
  const Kill kill = watch.Judge();
  EXPECT_EQ(kill.verdict, format::KillVerdict::kOomKiller);
  EXPECT_EQ(kill.cgroup, "/other");
}

// What a collector makes of records.
PressureLane ReadBack(const std::vector<uint8_t>& records, uint64_t start_ns = 0) {
  PressureCollector collector;
  format::RecordDecoder decoder(records.data(), records.size());
  while (decoder.Next()) {
    if (decoder.tag() == static_cast<uint64_t>(format::RecordTag::kPressure)) {
      collector.ReadSamples(decoder.body());
    } else if (decoder.tag() == static_cast<uint64_t>(format::RecordTag::kPressureNote)) {
      collector.AddNote(std::string(decoder.body().Bytes()));
    }
  }
  EXPECT_TRUE(decoder.ok());
  return collector.Finish(start_ns);
}

std::vector<PressureSample> Ramp(size_t count) {
  std::vector<PressureSample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i].monotonic_ns = 1000 + i * 10;
    samples[i].Set(Column::kRssAnon, i % 2 == 0 ? 1'000'000 + i : 1'000'000 - i);
    if (i % 3 == 0) samples[i].Set(Column::kRollupPss, uint64_t{1} << 62 | i);
    samples[i].Set(Column::kRssFile, 0);
    samples[i].Set(Column::kRssShmem, 5);
  }
  return samples;
}

TEST(PressureRecordsTest, BringBackEverySample) {
  const std::vector<PressureSample> samples = Ramp(200);  // several records
  std::vector<uint8_t> records;
  AppendSamples(samples, &records);
  AppendNote("a note", &records);
  const PressureLane lane = ReadBack(records, 1000);
  ASSERT_THAT(lane.points, SizeIs(200));
  EXPECT_EQ(lane.samples, 200u);
  EXPECT_THAT(lane.notes, ElementsAre("a note"));
  EXPECT_THAT(lane.columns, SizeIs(kColumns));
  const auto anon = lane.Series("rss_anon_bytes"), pss = lane.Series("rollup.pss_bytes");
  ASSERT_THAT(anon, SizeIs(200));
  ASSERT_THAT(pss, SizeIs(67)) << "not known in two of three";
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_THAT(anon[i], Pair(i * 10, samples[i][Column::kRssAnon]));
  }
  for (size_t i = 0; i < pss.size(); ++i) {
    EXPECT_THAT(pss[i], Pair(i * 30, samples[i * 3][Column::kRollupPss]));
  }
  EXPECT_THAT(lane.ResidentBytes()[3], Pair(30u, 1'000'000u - 3 + 5));
  EXPECT_THAT(lane.Series("swap_bytes"), IsEmpty());
  EXPECT_THAT(lane.Series("no.such"), IsEmpty());
  EXPECT_EQ(ReadBack(records, 1000 + 10 * 150).samples, 50u) << "those before are of another program";
  PressureLane range = lane;
  range.Narrow(100, 190);
  EXPECT_THAT(range.points, SizeIs(10));
  EXPECT_EQ(range.samples, 10u);
}

// A program that sleeps takes no samples from inside: those from outside stand until a newer one.
TEST(PressureRecordsTest, ResidentMemoryIsThatOfTheLatestSample) {
  std::vector<PressureSample> samples(2);
  for (size_t i = 0; i < 2; ++i) {
    samples[i].monotonic_ns = i == 0 ? 20 : 70;
    samples[i].Set(Column::kRssAnon, 1000 + i);
    samples[i].Set(Column::kRssFile, 0);
    samples[i].Set(Column::kRssShmem, 0);
  }
  std::vector<uint8_t> records;
  AppendSamples(samples, &records);
  std::vector<UsageSample> inside(4);
  for (size_t i = 0; i < inside.size(); ++i) {
    inside[i].time_ns = 10 + 30 * i;  // 10, 40, 70, 100
    inside[i].rss_bytes = i < 2 ? 1 : 2;  // the second repeats what the first saw
  }
  std::vector<TimelinePoint> points(11);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].time_ns = 10 * i;
    points[i].rss_bytes = FaultsAt(inside, {}, points[i].time_ns).rss_bytes;
  }
  FillResident(ReadBack(records, 0), inside, &points);
  std::vector<uint64_t> seen;
  for (const TimelinePoint& point : points) seen.push_back(point.rss_bytes);
  EXPECT_THAT(seen, ElementsAre(0, 1, 1000, 1000, 1000, 1000, 1000, 1001, 1001, 1001, 1001));
}

TEST(PressureRecordsTest, LeaveOutWhatWasBeforeTheProcess) {
  std::vector<uint8_t> records;
  AppendSamples(Ramp(10), &records);
  EXPECT_THAT(ReadBack(records, 1050).points, SizeIs(5));
}

TEST(PressureRecordsTest, AreThinnedWhenThereAreMany) {
  std::vector<uint8_t> records;
  AppendSamples(Ramp(20'000), &records);
  const PressureLane lane = ReadBack(records);
  EXPECT_EQ(lane.samples, 20'000u);
  EXPECT_LE(lane.points.size(), PressureLane::kMostPoints);
  EXPECT_GE(lane.points.size(), PressureLane::kMostPoints / 2);
  for (size_t i = 1; i < lane.points.size(); ++i) {
    EXPECT_EQ(lane.points[i].time_ns - lane.points[i - 1].time_ns, 40u) << "evenly";
  }
}

TEST(PressureRecordsTest, AnyBytesAreReadWithoutHarm) {
  std::vector<uint8_t> records;
  AppendSamples(Ramp(3), &records);
  for (size_t cut = 0; cut <= records.size(); ++cut) {  // bodies that end anywhere
    PressureCollector collector;
    format::RecordBody body(records.data(), records.data() + cut);
    collector.ReadSamples(body);
    EXPECT_LE(collector.Finish(0).points.size(), cut);
  }
  uint64_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes(64);
    for (uint8_t& byte : bytes) {
      state = state * 6364136223846793005 + 1442695040888963407;
      byte = static_cast<uint8_t>(state >> 56 & 0x1f);
    }
    PressureCollector collector;
    format::RecordBody body(bytes.data(), bytes.data() + bytes.size());
    collector.ReadSamples(body);
    EXPECT_LE(collector.Finish(0).columns.size(), PressureLane::kMostColumns);
  }
}

TEST(PressureSamplerTest, SpacesSamplesSoThatTheirNumberIsBounded) {
  constexpr uint64_t kMs = 1'000'000, kSecond = 1000 * kMs;
  EXPECT_EQ(IntervalAt(100 * kMs, 0), 10 * kMs);
  EXPECT_EQ(IntervalAt(100 * kMs, 50 * kMs), 50 * kMs);
  EXPECT_EQ(IntervalAt(100 * kMs, 30 * kSecond), 100 * kMs);
  EXPECT_EQ(IntervalAt(100 * kMs, 3600 * kSecond), 6 * kSecond);
  const auto samples_in = [](uint64_t run_ns) {
    uint64_t samples = 0;
    for (uint64_t now = 0; now < run_ns; now += IntervalAt(100 * kMs, now)) ++samples;
    return samples;
  };
  EXPECT_NEAR(static_cast<double>(samples_in(60 * kSecond)), 605, 10);
  EXPECT_NEAR(static_cast<double>(samples_in(3600 * kSecond)), 3060, 50);
  EXPECT_NEAR(static_cast<double>(samples_in(86400 * kSecond)), 4970, 60);
}

TEST(ColumnTitleTest, IsTheOneOfTheListOrTheWordsOfTheName) {
  EXPECT_EQ(ColumnTitle("rollup.pss_bytes"), "its share of what is resident (PSS)");
  EXPECT_EQ(ColumnTitle("sampler.cpu_us"), "memtrace's time for the samples");
  EXPECT_EQ(ColumnTitle("cgroup.of_tomorrow"), "cgroup of tomorrow");
}

}  // namespace
}  // namespace memtrace::report::pressure
