// What the disk under a trace may do to it: be full, become full and have room again, lose the
// file, refuse. The program does not notice; the trace says what it lacks and why. The numbers
// must come out: what was recorded and what was counted as lost is what a whole trace has.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRounds = 30;

Words KeepsTalking(const Words& happenings, int rounds = kRounds) {
  Words words = {TraceePath("keeps_talking"), std::to_string(rounds)};
  words.insert(words.end(), happenings.begin(), happenings.end());
  return words;
}

std::string Rounds(int rounds = kRounds) {
  std::string text;
  for (int i = 0; i < rounds; ++i) text += "round " + std::to_string(i) + "\n";
  return text;
}

// The allocations at sites whose stack has KeepLast() called by main().
uint64_t KeptLast(const Json& report) {
  uint64_t allocations = 0;
  for (const Json& site : report.at("sites")) {
    const Json& stack = site.at("stack");
    for (size_t i = 0; i + 1 < stack.size(); ++i) {
      if (stack[i].value("function", "") == "KeepLast" &&
          stack[i + 1].value("function", "") == "main") {
        allocations += site.at("allocations").get<uint64_t>();
      }
    }
  }
  return allocations;
}

uint64_t Events(const Json& report) { return report.at("coverage").at("events"); }
uint64_t Dropped(const Json& report) { return report.at("coverage").at("dropped_events"); }

// Of a run on a healthy disk.
uint64_t AllEvents() {
  static const uint64_t events = [] {
    TempDir traces;
    const Result run =
        RunCommand(Traced({.arguments = KeepsTalking({})}, traces.path()));
    EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
    EXPECT_EQ(run.out, Rounds());
    const Json report = BriefReport(TraceOf(traces.path(), "keeps_talking"));
    EXPECT_EQ(Dropped(report), 0u);
    return Events(report);
  }();
  return events;
}

// Few events, and a scan of some megabytes: each word of a table points into one block.
std::string HasMuchToScan(const TempDir& directory) {
  return Compile(directory, "much_to_scan", R"(#include <stdlib.h>
static char* volatile table[1 << 20];
int main(void) {
  char* const block = malloc(4321);
  for (int i = 0; i < 1 << 20; ++i) table[i] = block + i % 16;
  return 7;
})");
}

bool HasMounts() {
  const Words unshare = geteuid() == 0 ? Words{"unshare", "-m", "true"}
                                       : Words{"unshare", "-Urm", "true"};
  return RunCommand({.arguments = unshare}).exit_status == 0;
}

class DiskTest : public ::testing::Test {
 protected:
  // Runs `script` of sh with a file system of its own at $mount. $traced is before a program
  // that is to be traced into it, as t.mtr.
  Result RunOnMount(const std::string& mount, const std::string& script) {
    const std::string environment =
        "env LD_PRELOAD=" + LibraryPath() + " MEMTRACE_OUT=$mount/t.mtr";
    const std::string text = "mount=" + work_.path() + "/mount out=" + work_.path() +
                             " talks=" + TraceePath("keeps_talking") + " traced='" + environment +
                             "'; mkdir $mount && mount -t " + mount + " none $mount || exit 99\n" +
                             // $mount within $traced
                             "traced=$(eval echo $traced)\n" + script;
    Words words = {"unshare", geteuid() == 0 ? "-m" : "-Urm", "sh", "-c", text};
    return RunCommand({.arguments = words});
  }

  TempDir work_;
};

#define NEEDS_MOUNTS() \
  if (!HasMounts()) GTEST_SKIP() << "no mount namespace can be had here"

TEST_F(DiskTest, AFullDiskIsNotNoticedAndTheTraceSaysWhatItLacks) {
  NEEDS_MOUNTS();
  const Result run = RunOnMount("tmpfs -o size=360k",
                                "$traced $talks 30; status=$?; cp $mount/t.mtr $out; exit $status");
  ASSERT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, Rounds());
  EXPECT_EQ(run.err, "");
  const Json report = BriefReport(work_ / "t.mtr");
  EXPECT_GT(Dropped(report), AllEvents() / 3);
  EXPECT_EQ(Events(report) + Dropped(report), AllEvents());
  EXPECT_THAT(report.at("coverage").at("notes"),
              Contains(HasSubstr("could not be written to the trace (No space left on device)")));
  // Its lines are wrapped.
  EXPECT_THAT(ReportText(work_ / "t.mtr"),
              ::testing::ContainsRegex("No[ \n]+space[ \n]+left[ \n]+on[ \n]+device"));
  const Result info = RunCommand({.arguments = {ToolPath(), "info", work_ / "t.mtr"}});
  EXPECT_THAT(info.out, HasSubstr("No space left on device"));
}

TEST_F(DiskTest, WhatAScanFillsTheDiskWithIsToldOfAndThatTheEndHadNoRoom) {
  NEEDS_MOUNTS();
  const Result run =
      RunOnMount("tmpfs -o size=700k", "$traced " + HasMuchToScan(work_) +
                                           "; status=$?; cp $mount/t.mtr $out; exit $status");
  ASSERT_EQ(run.Outcome(), "exit 7") << run.err;
  const Json report = BriefReport(work_ / "t.mtr");
  EXPECT_EQ(Dropped(report), 0u);
  EXPECT_EQ(report.at("process").at("end"), "cut");
  EXPECT_THAT(report.at("no_leak_scan").get<std::string>(),
              HasSubstr("could not be written to the trace: No space left on device (make room"));
  const Json& coverage = report.at("coverage");
  EXPECT_EQ(coverage.at("all_recorded"), false);
  EXPECT_THAT(coverage.at("notes"),
              Contains(HasSubstr("The end of the process could not be written to the trace: No "
                                 "space left on device")));
  EXPECT_THAT(coverage.at("notes"), Not(Contains(HasSubstr("killed"))));
}

// Nothing can be appended any more, also not that: it is said in place.
TEST_F(DiskTest, AFullDiskIsToldOfByAKilledProgramToo) {
  NEEDS_MOUNTS();
  const Result run = RunOnMount(
      "tmpfs -o size=360k", "$traced $talks 31 30 kill 9 >/dev/null; cp $mount/t.mtr $out; true");
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = BriefReport(work_ / "t.mtr");
  EXPECT_GT(Dropped(report), AllEvents() / 3);
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("No space left on device")));
  EXPECT_NE(report.at("process").at("end"), "exit");
}

TEST_F(DiskTest, RecordingGoesOnWhenThereIsRoomAgain) {
  NEEDS_MOUNTS();
  const Result run = RunOnMount(
      "tmpfs -o size=4m",
      "$traced $talks 30 5 fill $mount/big 12 thread 0 20 unlink $mount/big; status=$?\n"
      "cp $mount/t.mtr $out; exit $status");
  ASSERT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, Rounds());
  const Json report = Report(work_ / "t.mtr");
  EXPECT_GT(Dropped(report), 0u);
  EXPECT_LT(Dropped(report), AllEvents() / 2 + AllEvents() / 6);
  EXPECT_EQ(report.at("process").at("end"), "exit");
  // With their whole stacks, which had been defined in what was lost.
  EXPECT_EQ(KeptLast(report), 777u);
  EXPECT_EQ(report.at("coverage").at("lost_blocks"), 0);
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("No space left on device")));
}

// btrfs writes what is written over to another place, for which there must be room, wherever it was before.
TEST_F(DiskTest, AFullDiskThatCopiesOnWriteIsNotNoticed) {
  NEEDS_MOUNTS();
  const Result made = RunCommand({.arguments = {"sh", "-c", "truncate -s 200M " + (work_ / "disk") +
                                                                " && mkfs.btrfs -q -M " + (work_ / "disk")}});
  if (made.exit_status != 0) GTEST_SKIP() << "no btrfs can be made here: " << made.err;
  const std::string program = Compile(work_, "allocates", R"(#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  const time_t end = time(NULL) + 12;
  while (time(NULL) < end) {
    for (int i = 0; i < 200; ++i) free(malloc((size_t)i));
    usleep(200);
  }
  puts("done");
  return 23;
})");
  const std::string script =
      "mkdir " + (work_ / "mount") + "; cd " + (work_ / "mount") + " && mount -o loop " + (work_ / "disk") + " . || exit 99\n" +
      "cd " + (work_ / "mount") + "\n" +
      "env LD_PRELOAD=" + LibraryPath() + " MEMTRACE_OUT=$PWD/t.mtr " + program + " & sleep 2\n" +
      "dd if=/dev/zero of=full bs=64k 2>/dev/null; sync; dd if=/dev/zero of=fuller bs=4k 2>/dev/null; sync\n" +
      "wait $!; status=$?; cp t.mtr ..; exit $status";
  const Result run = RunCommand({.arguments = {"unshare", "-m", "sh", "-c", script}, .timeout_seconds = 120});
  if (run.exit_status == 99) GTEST_SKIP() << "it cannot be mounted here: " << run.err;
  EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, "done\n");
  const Json report = BriefReport(work_ / "t.mtr");
  EXPECT_GT(Events(report), 1000u);
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("private memory")));
}

// ramfs has no fallocate(): the space of a ring is written.
TEST_F(DiskTest, AFileSystemThatCannotReserveSpaceKeepsRings) {
  NEEDS_MOUNTS();
  const Result run = RunOnMount(
      "ramfs", "$traced $talks 3 2 kill 9 >/dev/null; cp $mount/t.mtr $out; true");
  if (run.exit_status == 99) GTEST_SKIP() << "no ramfs here: " << run.err;
  const Json report = BriefReport(work_ / "t.mtr");
  EXPECT_EQ(Dropped(report), 0u);
  EXPECT_GE(report.at("totals").at("allocations"), 2 * 2 * 3000);
  EXPECT_THAT(report.at("coverage").at("notes"), Not(Contains(HasSubstr("private memory"))));
}

TEST_F(DiskTest, AReadOnlyFileSystemIsSaidOnceAndTheProgramRuns) {
  NEEDS_MOUNTS();
  const Result run = RunOnMount("tmpfs -o ro", "exec $traced $talks 30");
  EXPECT_EQ(run.Outcome(), "exit 23");
  EXPECT_EQ(run.out, Rounds());
  EXPECT_THAT(run.err, ::testing::MatchesRegex("memtrace: cannot create the trace [^\n]*Read-only "
                                               "file system; the program runs untraced [^\n]*\n"));
}

// --- what happens to the file ------------------------------------------------------------------

struct Happening {
  const char* name;
  Words happenings;  // TRACE stands for the file's name
};

class FileIsGoneTest : public ::testing::TestWithParam<Happening> {};

TEST_P(FileIsGoneTest, TheProgramDoesNotNoticeAndForeignFilesStay) {
  TempDir traces;
  const std::string trace = traces / "d/t.mtr";
  std::filesystem::create_directory(traces / "d");
  Words happenings = GetParam().happenings;
  for (std::string& word : happenings) {
    if (word == "TRACE") word = trace;
    if (word == "DIRECTORY") word = traces / "d";
  }
  Command command{.arguments = KeepsTalking(happenings),
                  .environment = {{"LD_PRELOAD", LibraryPath()}, {"MEMTRACE_OUT", trace}}};
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, Rounds());
  EXPECT_EQ(run.err, "");
  const std::string name = GetParam().name;
  if (name == "replaced") {
    EXPECT_EQ(ReadFile(trace), "somebody else's\n");
  }
  if (name == "renamed") {
    EXPECT_FALSE(Exists(trace));
    const Json report = BriefReport(trace + ".moved");
    EXPECT_EQ(Events(report) + Dropped(report), AllEvents());
    EXPECT_THAT(report.at("coverage").at("notes"),
                Contains(HasSubstr("the trace could not be opened: No such file")));
  }
  if (name == "removed" || name == "directory_removed") {
    EXPECT_FALSE(Exists(trace));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, FileIsGoneTest,
    ::testing::Values(Happening{"removed", {"5", "unlink", "TRACE"}},
                      Happening{"replaced", {"5", "replace", "TRACE"}},
                      Happening{"renamed", {"5", "move", "TRACE"}},
                      Happening{"directory_removed",
                                {"5", "unlink", "TRACE", "6", "unlink", "DIRECTORY"}},
                      Happening{"directory_renamed", {"5", "move", "DIRECTORY"}}),
    [](const auto& info) { return info.param.name; });

TEST(MemtraceRunTest, SaysWhatWasLostAndWhy) {
  TempDir work;
  const Result run = RunCommand(
      {.arguments = {ToolPath(), "run", "-o", work / "t.mtr", "--", "sh", "-c",
                     "exec \"$0\" 30 5 fsize 600000", TraceePath("keeps_talking")}});
  EXPECT_EQ(run.Outcome(), "exit 23");
  EXPECT_EQ(run.out, Rounds());
  EXPECT_THAT(run.err, ::testing::ContainsRegex(
                           "; [0-9,]+ events were lost \\(File too large\\); next: "));
  const Json report = BriefReport(work / "t.mtr");
  EXPECT_EQ(Events(report) + Dropped(report), AllEvents());
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("File too large")));
}

// --- limits ------------------------------------------------------------------------------------

struct Limits {
  const char* name;
  Words happenings;
  const char* note;
};

class LimitTest : public ::testing::TestWithParam<Limits> {};

// The program's own output is no file, or its own limit would end it.
Result TalkIntoAPipe(const Words& happenings, const TempDir& traces) {
  Command command = Traced({.arguments = KeepsTalking(happenings)}, traces.path());
  command.arguments.insert(command.arguments.begin(),
                           {"bash", "-c", "set -o pipefail; (exec \"$@\") | cat", "bash"});
  command.environment.emplace_back("MEMTRACE_CHILDREN", "follow");
  return RunCommand(command);
}

TEST_P(LimitTest, WhatCouldNotBeWrittenIsCountedAndNoSignalComes) {
  TempDir traces;
  const Result run = TalkIntoAPipe(GetParam().happenings, traces);
  EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, Rounds());
  EXPECT_EQ(run.err, "");
  const Json report = Report(TraceOf(traces.path(), "keeps_talking"));
  EXPECT_GT(Dropped(report), 0u);
  EXPECT_EQ(Events(report) + Dropped(report), AllEvents());
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr(GetParam().note)));
  if (std::string(GetParam().name).ends_with("for_a_while")) {
    EXPECT_EQ(KeptLast(report), 777u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LimitTest,
    ::testing::Values(
        Limits{"file_size_lowered", {"5", "fsize", "600000"}, "File too large"},
        Limits{"file_size_for_a_while", {"5", "fsize", "600000", "20", "fsize", "100000000"},
               "File too large"}),
    [](const auto& info) { return info.param.name; });

// Where the program has none, another process has (preload/descriptor_table.h).
TEST(LimitTest, ALimitOfDescriptorsThatCouldBeRaisedLosesNothing) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = KeepsTalking({"5", "nofile", "0"})}, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, Rounds());
  const Json report = Report(TraceOf(traces.path(), "keeps_talking"));
  EXPECT_EQ(Dropped(report), 0u);
  EXPECT_EQ(Events(report), AllEvents());
  EXPECT_EQ(KeptLast(report), 777u);
}

// A part of the trace is set aside before a limit that leaves it nothing at all.
TEST(LimitTest, LimitsThatLeaveNoFileLoseNothing) {
  for (const Words& happenings : {Words{"5", "fsize", "0"}, Words{"5", "nofile-for-good", "0"}}) {
    TempDir traces;
    const Result run = TalkIntoAPipe(happenings, traces);
    EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
    EXPECT_EQ(run.out, Rounds());
    const Json report = Report(TraceOf(traces.path(), "keeps_talking"));
    EXPECT_EQ(Dropped(report), 0u);
    EXPECT_EQ(Events(report), AllEvents());
    EXPECT_EQ(KeptLast(report), 777u);
  }
}

TEST(LimitTest, AFileSizeLimitFromTheBeginningIsSaid) {
  TempDir traces;
  const std::string traced = "LD_PRELOAD=" + LibraryPath() + " MEMTRACE_OUT=" + (traces / "t.mtr");
  for (const char* limit : {"0", "1"}) {  // of 1024 bytes
    const Result run = RunCommand(
        {.arguments = {"bash", "-c", "set -o pipefail; (ulimit -f " + std::string(limit) + "; " +
                       traced + " exec \"$0\" 30 2>&1) | cat", TraceePath("keeps_talking")}});
    EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
    EXPECT_THAT(run.out, ::testing::EndsWith(Rounds()));
    EXPECT_EQ(run.err, "");
    if (*limit == '0') {
      EXPECT_THAT(run.out, HasSubstr("File too large"));
      EXPECT_FALSE(Exists(traces / "t.mtr"));
    } else {
      // Rings are private, events all lost but the newest; the trace says it.
      EXPECT_EQ(run.out, Rounds());
      const Json report = BriefReport(traces / "t.mtr");
      EXPECT_GT(Dropped(report), 0u);
      EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("File too large")));
    }
  }
}

TEST(LimitTest, AQuotaIsToldOf) {
  // EDQUOT by a filter of system calls: no file system with quotas can be counted on.
  TempDir traces;
  Command command = Traced({.arguments = KeepsTalking({})}, traces.path());
  command.arguments.insert(command.arguments.begin(),
                           {TraceePath("refuses_system_calls"), "pwritev", "122"});
  command.environment.emplace_back("MEMTRACE_CHILDREN", "follow");
  const Result run = RunCommand(command);
  if (run.exit_status == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(run.Outcome(), "exit 23") << run.err;
  EXPECT_EQ(run.out, Rounds());
  const Json report = BriefReport(TraceOf(traces.path(), "keeps_talking"));
  EXPECT_GT(Dropped(report), AllEvents() / 2);
  EXPECT_EQ(Events(report) + Dropped(report), AllEvents());
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("Disk quota exceeded")));
}

TEST(LimitTest, AFileSystemWithoutSharedMappingsLosesNothingUnlessKilled) {
  for (const bool killed : {false, true}) {
    TempDir traces;
    Command command = Traced({.arguments = KeepsTalking(killed ? Words{"29", "kill", "9"}
                                                               : Words{})}, traces.path());
    command.arguments.insert(command.arguments.begin(),
                             {TraceePath("refuses_system_calls"), "shared-mappings", "19"});
    const Result run = RunCommand(command);
    if (run.exit_status == 77) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(run.Outcome(), killed ? "signal 9" : "exit 23") << run.err;
    const Json report = BriefReport(TraceOf(traces.path(), "keeps_talking"));
    EXPECT_EQ(Dropped(report), 0u);
    EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("private memory")));
    if (killed) {
      EXPECT_GT(Events(report), AllEvents() * 28 / 30 - 3 * 5500);  // a ring has about 5,000
    } else {
      EXPECT_EQ(Events(report), AllEvents());
    }
  }
}

TEST(LimitTest, TheSizeLimitIsSaidByTheTraceAndTheLine) {
  TempDir work;
  Words words = {ToolPath(), "run", "--max-bytes", "300K", "-o", work / "t.mtr", "--"};
  const Words talks = KeepsTalking({});
  words.insert(words.end(), talks.begin(), talks.end());
  const Result run = RunCommand({.arguments = words});
  EXPECT_EQ(run.Outcome(), "exit 23");
  EXPECT_EQ(run.out, Rounds());
  EXPECT_THAT(run.err, HasSubstr("; recording stopped at the size limit; "));
  const Json report = BriefReport(work / "t.mtr");
  EXPECT_THAT(report.at("coverage").at("notes"),
              Contains(HasSubstr("at the size limit (MEMTRACE_MAX_BYTES)")));
  const auto end_s = report.at("coverage").at("recording_end_s").get<double>();
  EXPECT_GT(end_s, 0);
  EXPECT_LE(end_s, report.at("process").at("duration_s").get<double>());
  EXPECT_EQ(report.at("no_leak_scan"), "the recording ended before the program did");
  // That some events were lost would be the least of it.
  for (const char* format : {"folded", "pprof", "speedscope", "callgrind", "massif", "dhat",
                             "heaptrack", "csv", "mtrace"}) {
    const Result other = RunCommand({.arguments = {ToolPath(), "report", work / "t.mtr", "--format",
                                                   format, "-o", work / "other"}});
    EXPECT_EQ(other.Outcome(), "exit 0") << format << other.err;
    EXPECT_THAT(other.err, HasSubstr("t.mtr: the recording ended before the program did, after "))
        << format;
  }
}

// Without a process beside it that could tell.
TEST(LimitTest, TheEndOfTheProcessIsToldBehindTheSizeLimit) {
  TempDir traces;
  Command command = Traced({.arguments = KeepsTalking({})}, traces.path());
  command.environment.emplace_back("MEMTRACE_MAX_BYTES", "300K");
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 23");
  const Json report = BriefReport(TraceOf(traces.path(), "keeps_talking", run.pid));
  EXPECT_EQ(report.at("process").at("end"), "exit");
  EXPECT_EQ(report.at("process").at("exit_status"), 23);
  EXPECT_FALSE(report.at("coverage").at("recording_end_s").is_null());
  EXPECT_EQ(report.at("coverage").at("recovered_events"), 0);
}

// Of the first scan nothing is written, of the other a part.
TEST(LimitTest, AScanThatTheSizeLimitHasNoRoomForIsToldOf) {
  TempDir work;
  const std::string program = HasMuchToScan(work);
  for (const auto& [limit, which] : {std::pair("1", "scan 1 could not be written to the trace: "),
                                     std::pair("1M",
                                               "scan 1: what it found could not be written "
                                               "to the trace: ")}) {
    SCOPED_TRACE(limit);
    TempDir traces;
    Command command = Traced({.arguments = {program}}, traces.path());
    command.environment.emplace_back("MEMTRACE_MAX_BYTES", limit);
    const Result run = RunCommand(command);
    EXPECT_EQ(run.Outcome(), "exit 7") << run.err;
    const Json report = BriefReport(TraceOf(traces.path(), "much_to_scan", run.pid));
    EXPECT_EQ(Dropped(report), 0u);
    EXPECT_EQ(report.at("process").at("end"), "exit");
    EXPECT_THAT(report.at("no_leak_scan").get<std::string>(),
                ::testing::StartsWith(
                    which + std::string("the size limit was reached (raise MEMTRACE_MAX_BYTES")));
    EXPECT_THAT(report.at("coverage").at("notes"),
                Contains(HasSubstr("Memory scan 1 could not be written to the trace: the size")));
    EXPECT_EQ(report.at("coverage").at("all_recorded"), false);
  }
}

// The limit is for each file: what a full one's process forks has one of its own.
TEST(LimitTest, AChildOfAProcessWhoseTraceIsFullHasOne) {
  TempDir work;
  const std::string program = Compile(work, "forks", R"(#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  for (long i = 0; i < 1000000; ++i) free(malloc((size_t)(i % 5000)));
  for (int i = 0; i < 2; ++i) {
    if (fork() != 0) continue;
    void* volatile lost = malloc(4321);
    lost = NULL;
    exit(5);
  }
  while (wait(NULL) > 0) {
  }
  return 3;
})");
  Command command = Traced({.arguments = {program}}, work.path());
  command.environment.emplace_back("MEMTRACE_MAX_BYTES", "1M");
  command.environment.emplace_back("MEMTRACE_CHILDREN", "follow");
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 3") << run.err;
  int children = 0;
  for (const std::string& trace : FilesIn(work.path(), ".mtr")) {
    const Json report = Report(work / trace);
    if (report.at("process").at("pid") == run.pid) {
      EXPECT_EQ(report.at("process").at("exit_status"), 3);
      continue;
    }
    ++children;
    EXPECT_EQ(report.at("totals").at("live_bytes"), 4321) << trace;
    EXPECT_EQ(report.at("process").at("exit_status"), 5);
  }
  EXPECT_EQ(children, 2);
}

// Each has a ring, for which the limit has no room.
TEST(LimitTest, AThousandThreadsDoNotExceedIt) {
  constexpr uint64_t kLimit = 1 << 20;
  TempDir traces;
  Command command = Traced({.arguments = {TraceePath("many_threads"), "at_once", "1000"}}, traces.path());
  command.environment.emplace_back("MEMTRACE_MAX_BYTES", std::to_string(kLimit));
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces.path(), "many_threads", run.pid);
  // What is told of the process and its threads is not for the limit.
  EXPECT_LE(std::filesystem::file_size(trace), kLimit + (256 << 10));
  const Json report = BriefReport(trace);
  EXPECT_GT(Events(report), 1000u);
  EXPECT_THAT(report.at("coverage").at("notes"), Contains(HasSubstr("size limit")));
}

}  // namespace
}  // namespace memtrace::e2e
