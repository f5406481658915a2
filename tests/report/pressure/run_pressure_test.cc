// `memtrace run` with the samples it takes from outside, and with what kills programs.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "report/pressure/kernel_files.h"
#include "report/pressure/memory_cgroup.h"
#include "tests/report/run/run_e2e.h"

namespace memtrace::report {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

uint64_t OomKillsOfTheMachine() {
  const auto vmstat = pressure::KernelFiles().Read("/proc/vmstat");
  return vmstat.ok() ? pressure::NumberAfter(*vmstat, "oom_kill").value_or(0) : 0;
}

// A memory control group of ours, within the one we are in; gone with the test.
class SmallGroup {
 public:
  explicit SmallGroup(uint64_t limit_bytes) {
    const auto own = pressure::FindMemoryCgroup(pressure::KernelFiles(),
                                                static_cast<uint32_t>(getpid()));
    if (!own.ok()) return;
    path_ = own->directory + "/memtrace-test-" + std::to_string(getpid());
    if (mkdir(path_.c_str(), 0755) != 0) {
      path_.clear();
      return;
    }
    const bool second = own->version == 2;
    usable_ = Write(second ? "memory.max" : "memory.limit_in_bytes", limit_bytes);
    Write(second ? "memory.swap.max" : "memory.swappiness", 0);  // that it is killed, not swapped
  }
  ~SmallGroup() {
    // It is empty as soon as what was killed in it has been buried.
    for (int i = 0; i < 1000 && !path_.empty() && rmdir(path_.c_str()) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  bool usable() const { return usable_; }
  std::string procs() const { return path_ + "/cgroup.procs"; }

 private:
  bool Write(const char* file, uint64_t value) {
    std::ofstream out(path_ + "/" + file);
    out << value << std::flush;
    return out.good();
  }
  std::string path_;
  bool usable_ = false;
};

class PressureRunTest : public RunTest {
 protected:
  Json Report() {
    const Outcome outcome = Running({RUN_MEMTRACE, "report", directory_ / "out.mtr", "--format",
                                     "json", "--full"}, directory_.path()).Wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  std::string Text(const std::string& command) {
    return Running({RUN_MEMTRACE, command, directory_ / "out.mtr"}, directory_.path()).Wait().out;
  }
};

TEST_F(PressureRunTest, SeesFromOutsideWhatTheProgramSeesFromInside) {
  Json lane, points, timeline;
  double inside = 0, seen = 0, rolled_up = 0;
  // How long until a sample, and one of the seldom ones with smaps_rollup, falls into the wait is
  // the scheduler's affair.
  const auto seen_in_full = [&] {
    return inside != 0 && std::min(seen, rolled_up) > inside - (1 << 20);
  };
  for (int hold_ms = 50; hold_ms <= 6400 && !seen_in_full(); hold_ms *= 2) {
    Running run(Command({tracee_, "grow", "40"}, {"--sample-interval", "5ms"}), directory_.path());
    run.WaitFor("\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(hold_ms));
    kill(run.pid(), SIGTERM);
    const Outcome outcome = run.Wait();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    inside = 1024.0 * std::stod(outcome.out.substr(outcome.out.find(' ')));
    const Json report = Report();
    lane = report["pressure"];
    timeline = report["timeline"]["points"];
    seen = rolled_up = 0;
    for (const Json& point : lane["points"]) {
      if (point.contains("rollup.rss_bytes")) {
        rolled_up = std::max(rolled_up, point["rollup.rss_bytes"].get<double>());
      }
      if (!point.contains("rss_anon_bytes")) continue;
      seen = std::max(seen, point["rss_anon_bytes"].get<double>() +
                                point["rss_file_bytes"].get<double>() +
                                point["rss_shmem_bytes"].get<double>());
    }
  }
  EXPECT_GT(inside, 40 << 20);
  EXPECT_NEAR(seen, inside, 1 << 20) << "the kernel counts in batches";
  ASSERT_GE(lane["points"].size(), 3u);
  const Json& first = lane["points"].front();
  const Json& last = lane["points"].back();
  EXPECT_LT(first["time_s"], last["time_s"]);
  EXPECT_FALSE(last.contains("rss_anon_bytes")) << "it had ended";
  EXPECT_TRUE(last.contains("system.pgmajfault"));
  EXPECT_TRUE(last.contains("system.workingset_refault_file"));
  EXPECT_TRUE(last.contains("system.pswpin"));
  EXPECT_GT(last["sampler.cpu_us"], 0);
  bool of_tree = false;
  for (const Json& point : lane["points"]) {
    if (point.contains("rollup.rss_bytes")) {
      EXPECT_LE(point["rollup.pss_bytes"], point["rollup.rss_bytes"]);
    }
    of_tree |= point.contains("tree.processes") && point["tree.processes"] == 1;
  }
  EXPECT_NEAR(rolled_up, inside, 1 << 20);
  EXPECT_TRUE(of_tree);
  double in_timeline = 0;
  for (const Json& point : timeline) {
    if (!point["rss_bytes"].is_null()) {
      in_timeline = std::max(in_timeline, point["rss_bytes"].get<double>());
    }
  }
  EXPECT_NEAR(in_timeline, inside, 1 << 20);
  EXPECT_THAT(Text("report"), HasSubstr("\nPRESSURE  "));
  const std::string csv = Running({RUN_MEMTRACE, "report", directory_ / "out.mtr", "--format", "csv",
                                   "--table", "pressure"}, directory_.path()).Wait().out;
  std::string head = "time_s";
  for (const Json& column : lane["columns"]) head += "," + column.get<std::string>();
  EXPECT_THAT(csv, StartsWith(head + "\r\n"));
  EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')),
            lane["points"].size() + 1);
  EXPECT_THAT(Text("info"), HasSubstr("\nsamples from outside\n"));
}

TEST_F(PressureRunTest, SaysThatTheOomKillerKilledItAndWhatTheHeapHeld) {
  const SmallGroup group(64 << 20);
  if (!group.usable()) GTEST_SKIP() << "no memory control group can be made here";
  // Where it was when it was killed is known if it was seen there: how long that takes is the
  // scheduler's affair.
  Outcome outcome;
  for (const char* pause : {"0.2", "1", "5"}) {
    outcome = Run({"/bin/sh", "-c", "echo $$ > " + group.procs() + " && sleep " + pause + " && exec " +
                                        tracee_ + " grow 4096"});
    if (outcome.err.find("memory limit") != std::string::npos) break;
  }
  EXPECT_EQ(outcome.status, 128 + SIGKILL);
  EXPECT_THAT(outcome.err, StartsWith("memtrace: killed by the OOM killer (SIGKILL), memory limit "
                                      "64.0 MiB, the heap held "));
  const Json report = Report();
  EXPECT_EQ(report["process"]["end"], "signal");
  EXPECT_EQ(report["process"]["end_signal"], SIGKILL);
  EXPECT_EQ(report["process"]["oom_killed"], true);
  EXPECT_EQ(report["process"]["memory_limit_bytes"], 64 << 20);
  EXPECT_THAT(report["process"]["oom_evidence"].get<std::string>(),
              AnyOf(HasSubstr("oom_kill"), HasSubstr("kernel log")));
  // All but what the library, the loader and the kernel's own tables take of the limit.
  EXPECT_GT(report["totals"]["live_bytes"], 48 << 20);
  EXPECT_LE(report["totals"]["live_bytes"], (64 << 20) + (1 << 20)) << "the last block was not touched";
  const std::string text = Text("report");
  EXPECT_THAT(text, HasSubstr("killed by the OOM killer (SIGKILL)"));
  EXPECT_THAT(text, HasSubstr("the heap held "));
  EXPECT_THAT(text, HasSubstr("limit was 64.0 MiB"));
  EXPECT_THAT(Text("info"), HasSubstr("killed by the OOM killer"));
}

TEST_F(PressureRunTest, SaysThatAnotherSigkillWasNoOomKill) {
  const uint64_t before = OomKillsOfTheMachine();
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{}, {"--no-samples"}}) {
    const Outcome outcome = Run({tracee_, "kill", "9"}, options);
    EXPECT_EQ(outcome.status, 128 + SIGKILL);
    // Somebody else on this machine may run out of memory right now.
    if (OomKillsOfTheMachine() != before) continue;
    EXPECT_THAT(outcome.err, StartsWith("memtrace: ended by SIGKILL, not by the OOM killer; wrote"));
    const Json report = Report();
    EXPECT_EQ(report["process"]["end"], "signal");
    EXPECT_EQ(report["process"]["oom_killed"], false);
    EXPECT_EQ(report["pressure"].is_null(), !options.empty());
    EXPECT_THAT(Text("report"), HasSubstr("killed by SIGKILL, not by the OOM killer"));
  }
}

TEST_F(PressureRunTest, NotesThatTheOomKillerTookAChild) {
  const SmallGroup group(64 << 20);
  if (!group.usable()) GTEST_SKIP() << "no memory control group can be made here";
  const Outcome outcome =
      Run({"/bin/sh", "-c", "echo $$ > " + group.procs() + "; " + tracee_ + " grow 4096; sleep 0.3; exit 5"});
  EXPECT_EQ(outcome.status, 5);
  EXPECT_THAT(outcome.err, Not(HasSubstr("OOM")));
  EXPECT_TRUE(Report()["process"]["oom_killed"].is_null()) << "it exited";
  EXPECT_THAT(Text("report"), HasSubstr("killed for lack of memory"));
}

TEST_F(PressureRunTest, RefusesAnIntervalThatIsNone) {
  for (const auto& [interval, why] : std::vector<std::pair<std::string, std::string>>{
           {"5", "takes a time such as"}, {"soon", "takes a time such as"},
           {"2h", "is not between 1ms and 1h"}, {"10us", "is not between 1ms and 1h"}}) {
    const Outcome outcome = Run({tracee_, "exit", "0"}, {"--sample-interval", interval});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr(why)) << interval;
  }
}

}  // namespace
}  // namespace memtrace::report
