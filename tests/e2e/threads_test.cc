// Threads by the thousand: at once, one after another, and beside others that live on. What they
// free as they end is free, their memory serves others, and their names are known.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/expected_stacks.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

constexpr uint64_t kBudgetBytes = 2 << 20;
constexpr uint64_t kThreadBudgetBytes = 256 << 10;

class ThreadsTest : public ::testing::Test {
 protected:
  // False: this machine does not let it have so many.
  bool Run(const Words& arguments) {
    Words words = {TraceePath("many_threads")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Result run = RunCommand(
        Traced({.arguments = words, .timeout_seconds = 1500}, directory_.path()));
    if (run.exit_status == 77) return false;
    EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
    trace_ = TraceOf(directory_.path(), "many_threads");
    report_ = Report(trace_);
    ExpectStacks(report_, Parse(run.out).expected);
    for (const char* none : {"unordered_events", "unknown_frees", "unseen_frees",
                             "dropped_events", "marked_stacks"}) {
      EXPECT_EQ(report_.at("coverage").at(none), 0) << none;
    }
    // glibc keeps its own for the threads to come: of these stacks nothing is live.
    for (const Json& site : report_.at("sites")) {
      for (const Json& frame : site.at("stack")) {
        if (IsFunction(frame, "Early") || IsFunction(frame, "OnThreadEnd")) {
          EXPECT_EQ(site.at("live_blocks"), 0) << Names(site.at("stack"));
        }
      }
    }
    const auto counters = Counters(trace_);
    EXPECT_EQ(counters.at("missed_events"), 0u);
    EXPECT_EQ(counters.at("private_rings"), 0u);
    tool_bytes_ = counters.at("tool_memory_bytes");
    return true;
  }
  uint64_t FileBytes() const {
    struct stat info = {};
    stat(trace_.c_str(), &info);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  TempDir directory_;
  std::string trace_;
  Json report_;
  uint64_t tool_bytes_ = 0;
};

// `how_many`, and ten names that they gave themselves after their first event.
void ExpectThreads(const Json& report, size_t how_many) {
  std::set<std::string> names;
  size_t named = 0;
  for (const Json& thread : report.at("threads")) {
    const std::string name = thread.at("name");
    if (!name.starts_with("one of all ")) continue;
    names.insert(name);
    ++named;
    EXPECT_EQ(thread.at("allocations"), 14) << name;
    EXPECT_EQ(thread.at("live_blocks"), 0) << name;
  }
  EXPECT_EQ(named, how_many);
  EXPECT_EQ(names.size(), 10u);
}

TEST_F(ThreadsTest, AThousandAtOnce) {
  if (!Run({"at_once", "1000"})) GTEST_SKIP() << "no 1,000 threads here";
  ExpectThreads(report_, 1000);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 1001 * kThreadBudgetBytes);
  // A small ring each, not one of 64 KiB.
  EXPECT_LE(FileBytes(), uint64_t{1000} * (20 << 10));
}

TEST_F(ThreadsTest, DISABLED_TenThousandAtOnce) {
  if (!Run({"at_once", "10000"})) GTEST_SKIP() << "no 10,000 threads here";
  ExpectThreads(report_, 10'000);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 10'001 * kThreadBudgetBytes);
  EXPECT_LE(FileBytes(), uint64_t{10'000} * (20 << 10));
}

// Joined, detached, cancelled, exiting while others exit: those that come use the memory of
// those that went.
TEST_F(ThreadsTest, FiveThousandInTurn) {
  ASSERT_TRUE(Run({"in_turn", "5000", "8"}));
  EXPECT_EQ(report_.at("threads").size(), 5001u);
  // Some end a little after the program knows of it.
  EXPECT_LE(tool_bytes_, kBudgetBytes + 32 * kThreadBudgetBytes);
}

// The states of those that live lie in a row, and searches for one of the dead that ended within it
// would make a further one each: more than 700, with 10,000 threads.
TEST_F(ThreadsTest, TenThousandBesideTwoHundredThatLive) {
  if (!Run({"beside", "10000", "200"})) GTEST_SKIP() << "no 200 threads here";
  EXPECT_EQ(report_.at("threads").size(), 10'201u);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 300 * kThreadBudgetBytes);
}

TEST_F(ThreadsTest, DISABLED_AMillionInTurn) {
  ASSERT_TRUE(Run({"in_turn", "1000000", "8"}));
  EXPECT_EQ(report_.at("threads").size(), 1'000'001u);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 32 * kThreadBudgetBytes);
}

// /proc/self is then of a task that has no memory.
TEST_F(ThreadsTest, WhatOutlivesTheFirstIsKnownAll) {
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {TraceePath("outlives_its_first_thread")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "outlives_its_first_thread", run.pid));
  EXPECT_FALSE(report.at("memory_map").is_null());
  uint64_t resident = 0;
  for (const Json& point : report.at("timeline").at("points")) {
    resident = std::max(resident, point.at("rss_bytes").is_null() ? 0 : point.at("rss_bytes").get<uint64_t>());
  }
  EXPECT_GT(resident, uint64_t{32} << 20);
  EXPECT_NE(report.at("mappings").dump().find("bin/"), std::string::npos);
}

// Where there is no memory for the state of a thread, each of its events asks for it again.
TEST(ThreadWithoutMemoryTest, CostsThoseThatComeLaterNothing) {
  TempDir directory;
  WriteFile(directory / "program.c", R"(
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void* Allocate(void* times) {
  for (long i = 0; i < (long)times; ++i) free(malloc(24));
  return NULL;
}

static int RunThread(long times) {
  pthread_t thread;
  return pthread_create(&thread, NULL, Allocate, (void*)times) != 0 || pthread_join(thread, NULL) != 0;
}

int main(void) {
  // A thread whose stack is there already, and then no more memory.
  pthread_t thread;
  struct rlimit before, none;
  getrlimit(RLIMIT_AS, &before);
  none = before;
  none.rlim_cur = 1 << 20;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  static char stack[1 << 20] __attribute__((aligned(4096)));
  pthread_attr_setstack(&attributes, stack, sizeof(stack));
  void* const held = malloc(100);
  if (setrlimit(RLIMIT_AS, &none) != 0) return 77;
  if (pthread_create(&thread, &attributes, Allocate, (void*)80000L) != 0) return 77;
  pthread_join(thread, NULL);
  if (setrlimit(RLIMIT_AS, &before) != 0) return 65;
  free(held);
  return RunThread(5000);
}
)");
  const Result built = RunCommand({.arguments = {"gcc", "-O1", "-fno-builtin", directory / "program.c", "-o",
                                                 directory / "program"}});
  ASSERT_EQ(built.Outcome(), "exit 0") << built.err;
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {directory / "program"}}, traces.path()));
  if (run.exit_status == 77) GTEST_SKIP() << "no thread can be made so here";
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = BriefReport(TraceOf(traces.path(), "program", run.pid));
  EXPECT_GE(report.at("coverage").at("dropped_events").get<uint64_t>(), 70'000u)
      << "there was memory for it: this tests nothing";
  uint64_t most = 0;
  for (const Json& thread : report.at("threads")) {
    most = std::max(most, thread.at("allocations").get<uint64_t>());
  }
  EXPECT_GE(most, 5000u);
}

// What the fork children of forks_into_threads have recorded of the blocks of a size, by their traces.
std::vector<uint64_t> AllocatedInChildren(const TempDir& traces, uint64_t bytes, bool all_recorded) {
  std::vector<uint64_t> allocated;
  for (const std::string& trace : FilesIn(traces.path(), ".mtr")) {
    const Json report = Report(traces.path() + "/" + trace, {"--top", "100000"});
    if (!report.at("process").at("forked").get<bool>()) continue;
    EXPECT_EQ(report.at("coverage").at("all_recorded"), all_recorded) << trace;
    EXPECT_EQ(report.at("invalid_frees").at("stories"), Json::array()) << trace;
    uint64_t blocks = 0;
    for (const Json& site : report.at("sites")) {
      const uint64_t count = site.at("allocations").get<uint64_t>();
      if (site.at("bytes_allocated").get<uint64_t>() == bytes * count) blocks += count;
    }
    allocated.push_back(blocks);
  }
  return allocated;
}

struct OfChildren {
  std::vector<uint64_t> by_threads, by_the_first;  // allocations, of each child
};
OfChildren Recorded(const std::string& mode, bool all_recorded) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("forks_into_threads"), mode}}, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  return {AllocatedInChildren(traces, 1777, all_recorded),
          AllocatedInChildren(traces, 1783, all_recorded)};
}

// Threads that come while another begins the trace wait for it; and the thread that lives on in a
// fork child shares nothing with one that was first there.
TEST(ForkIntoThreadsTest, WhicheverThreadsEventIsFirstInAChild) {
  for (const char* mode : {"fork", "atfork"}) {
    const OfChildren found = Recorded(mode, true);
    EXPECT_EQ(found.by_threads, std::vector<uint64_t>(12, 800)) << mode;
    EXPECT_EQ(found.by_the_first, std::vector<uint64_t>(12, 400)) << mode;
  }
}

// Those that wait leave the processors to the one that begins.
TEST(ForkIntoThreadsTest, ManyMayBeFirstAtOnce) {
  EXPECT_EQ(Recorded("many", true).by_threads, std::vector<uint64_t>(1, 300));
}

// Its first thread finds out by its first event, which is lost, and told as that.
TEST(ForkIntoThreadsTest, OfAForkThatNobodySawAnEventIsMissing) {
  const OfChildren found = Recorded("syscall", false);
  EXPECT_EQ(found.by_threads, std::vector<uint64_t>(12, 800));
  EXPECT_EQ(found.by_the_first, std::vector<uint64_t>(12, 399));
}

}  // namespace
}  // namespace memtrace::e2e
