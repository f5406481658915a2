// `memtrace report` of a long trace, as a user runs it: the same bytes for any --jobs, memory that
// does not grow with the events, progress on a terminal, and Ctrl-C.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "format/trace_format.h"
#include "tests/report/long_trace.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr char kMemtrace[] = MEMTRACE_BUILD_DIR "/bin/memtrace";
constexpr char kStalledRead[] = MEMTRACE_BUILD_DIR "/tests/libstalled_read.so";

std::string Content(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class EngineCommandTest : public testing::Test {
 protected:
  void TearDown() override {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    if (terminal_ >= 0) close(terminal_);
  }

  std::string Path(const std::string& name) const { return directory_ / name; }

  LongTraceFacts MakeTrace(const LongTraceOptions& options, const std::string& name = "long.mtr") {
    LongTraceFacts facts;
    const absl::Status status = WriteLongTrace(Path(name), options, &facts);
    EXPECT_TRUE(status.ok()) << status;
    return facts;
  }

  // The generator gives every trace the same, and the copy of a trace is left out.
  void GiveAnotherId(const std::string& name) {
    std::fstream file(Path(name), std::ios::in | std::ios::out | std::ios::binary);
    format::FileHeader header;
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    ++header.trace_id;
    header.header_checksum =
        format::Checksum(&header, offsetof(format::FileHeader, header_checksum));
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  }

  // The arguments of a report of long.mtr that makes no index.
  Words Report(const Words& options, const std::string& jobs = "1") const {
    Words words = {"report", "--index", "off", "--jobs", jobs};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(Path("long.mtr"));
    return words;
  }

  struct Way {
    bool stalled = false;   // it waits in the midst of the reading until GoOn()
    bool terminal = false;  // what it does not write to standard output goes to one of its own
    int at = 6;             // at which read it waits; 0: at none, but they are counted
  };
  // Standard output goes to the file `out`, the rest to where the test's goes. Of a run before this
  // one nothing is left but its files.
  void Start(const Words& arguments, const Way& way) {
    fs::remove(Path("reached"));
    fs::remove(Path("go"));
    if (terminal_ >= 0) close(std::exchange(terminal_, -1));
    Words words = {kMemtrace};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = way.terminal ? forkpty(&terminal_, nullptr, nullptr, nullptr) : fork();
    ASSERT_GE(process_, 0);
    if (process_ != 0) return;
    const int out = open(Path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    if (way.stalled) {
      setenv("STALL_AT", absl::StrCat(way.at).c_str(), 1);
      setenv("STALL_DIR", directory_.path().c_str(), 1);
      setenv("LD_PRELOAD", kStalledRead, 1);
      const char* asan = getenv("ASAN_OPTIONS");  // whose library wants to be the first
      setenv("ASAN_OPTIONS",
             absl::StrCat(asan != nullptr ? asan : "", ":verify_asan_link_order=0").c_str(), 1);
    }
    execv(argv[0], argv.data());
    _exit(97);
  }

  void AwaitTheStall() {
    while (!fs::exists(Path("reached"))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void GoOn() { std::ofstream(Path("go")) << "\n"; }
  void InterruptAtTheStall() {
    AwaitTheStall();
    kill(process_, SIGINT);
    GoOn();
  }

  int Wait(struct rusage* usage = nullptr) {
    int status = 0;
    struct rusage unused;
    wait4(process_, &status, 0, usage != nullptr ? usage : &unused);
    process_ = -1;
    return status;
  }

  // What the process writes to its terminal until it has ended.
  std::string ReadTerminal() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(terminal_, buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
    return text;  // EIO: nobody has it open any more
  }

  nlohmann::json Json() const { return nlohmann::json::parse(Content(Path("out"))); }

  TempDir directory_;
  pid_t process_ = -1;
  int terminal_ = -1;
};

TEST_F(EngineCommandTest, AnyNumberOfJobsGivesTheSameBytes) {
  constexpr uint64_t kEvents = 300'000;
  const LongTraceFacts facts =
      MakeTrace({.events = kEvents, .threads = 5, .live_blocks = 5000, .sites = 300});
  std::string one;
  for (const char* jobs : {"1", "2", "3", "8"}) {
    Start(Report({"--format", "json"}, jobs), {});
    EXPECT_EQ(Wait(), 0);
    const std::string json = Content(Path("out"));
    if (one.empty()) one = json;
    EXPECT_EQ(json, one) << jobs;
  }
  const auto report = nlohmann::json::parse(one);
  EXPECT_EQ(report["totals"]["allocations"], facts.allocations);
  EXPECT_EQ(report["totals"]["frees"], facts.frees);
  EXPECT_EQ(report["totals"]["bytes_allocated"], facts.bytes_allocated);
  EXPECT_EQ(report["totals"]["live_bytes"], facts.live_bytes);
  EXPECT_EQ(report["totals"]["live_blocks"], facts.live_blocks);
  EXPECT_EQ(report["totals"]["peak_live_bytes"], facts.peak_live_bytes);
  EXPECT_EQ(report["coverage"]["events"], kEvents);
  EXPECT_EQ(report["coverage"]["unknown_frees"], 0);
  EXPECT_EQ(report["coverage"]["interrupted"], false);
}

TEST_F(EngineCommandTest, JobsMustBeANumberOfThreads) {
  for (const char* jobs : {"257", "-1", "many"}) {
    Start(Report({}, jobs), {.terminal = true});
    const std::string said = ReadTerminal();
    EXPECT_EQ(WEXITSTATUS(Wait()), 2);
    EXPECT_THAT(said, HasSubstr("--jobs: "));
  }
}

// Five times the events, the same live heap and sites; both more than what is read ahead.
TEST_F(EngineCommandTest, MemoryDoesNotGrowWithTheEvents) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what was freed stays in memory for a while";
#endif
  LongTraceOptions options = {.threads = 2, .live_blocks = 20'000, .sites = 1000, .level = 1};
  long kilobytes[2];
  for (const int i : {0, 1}) {
    options.events = i == 0 ? 4'000'000 : 20'000'000;
    MakeTrace(options);
    Start(Report({"--table", "summary"}, "2"), {});
    struct rusage usage;
    EXPECT_EQ(Wait(&usage), 0);
    kilobytes[i] = usage.ru_maxrss;
    EXPECT_THAT(Content(Path("out")), HasSubstr(i == 0 ? "4,000,000 events, none lost"
                                                       : "20,000,000 events, none lost"));
  }
  EXPECT_LT(kilobytes[1], kilobytes[0] + 24 * 1024);
  EXPECT_LT(kilobytes[1], 160 * 1024);
}

// As the library sees it in the reporter itself.
TEST_F(EngineCommandTest, LargeBlocksBeginWhereHugePagesDo) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "operator new is the sanitizer's";
#endif
  MakeTrace({.events = 200'000, .sites = 20'000});
  setenv("LD_PRELOAD", MEMTRACE_BUILD_DIR "/lib/libmemtrace.so", 1);
  setenv("MEMTRACE_OUT", Path("reader.mtr").c_str(), 1);
  Start(Report({}), {});
  unsetenv("LD_PRELOAD");
  unsetenv("MEMTRACE_OUT");
  ASSERT_EQ(Wait(), 0);
  Start({"dump", Path("reader.mtr")}, {});
  ASSERT_EQ(Wait(), 0);
  constexpr uint64_t kLarge = 4 << 20, kHugePage = 2 << 20;
  std::ifstream lines(Path("out"));
  int large = 0;
  for (std::string line; std::getline(lines, line);) {
    uint64_t address = 0, size = 0;
    if (sscanf(line.c_str(), "%*s %*s posix_memalign %" SCNx64 " size=%" SCNu64, &address,
               &size) != 2 || size < kLarge) {
      continue;
    }
    ++large;
    EXPECT_EQ(address % kHugePage, 0u) << line;
  }
  EXPECT_GE(large, 2);
}

TEST_F(EngineCommandTest, ShowsProgressOnATerminal) {
  MakeTrace({.events = 3'000'000});
  Start(Report({}), {.stalled = true, .terminal = true});
  AwaitTheStall();
  // Nothing is shown of what takes less than a second.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  GoOn();
  const std::string shown = ReadTerminal();
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(shown, ContainsRegex("memtrace: reading +\\[#+ +\\] +[0-9]+ %, [0-9.]+ M events/s, "
                                   "[0-9]+:[0-9][0-9] left"));
  EXPECT_THAT(shown, testing::EndsWith("    \r"));  // and is gone in the end
  EXPECT_THAT(shown, testing::Not(HasSubstr("\x1b[K")));  // which not all terminals know
}

TEST_F(EngineCommandTest, CtrlCReportsWhatWasRead) {
  constexpr uint64_t kEvents = 3'000'000;
  MakeTrace({.events = kEvents});
  for (const char* jobs : {"1", "3"}) {
    Start(Report({"--format", "json"}, jobs), {.stalled = true, .terminal = true});
    AwaitTheStall();
    ASSERT_EQ(write(terminal_, "\x03", 1), 1);
    // The terminal shows it when it has told the process.
    char shown[2];
    ASSERT_EQ(read(terminal_, shown, 2), 2);
    GoOn();
    const std::string said = ReadTerminal();
    const int status = Wait();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_THAT(said, ContainsRegex("memtrace: the reading was interrupted: this is of the first "
                                    "[0-9.]+ % of the events, up to [0-9.]+ s"));
    const auto report = Json();
    EXPECT_EQ(report["coverage"]["interrupted"], true);
    const double share = report["coverage"]["read_share"];
    EXPECT_LT(share, 0.95);
    EXPECT_THAT(report["coverage"]["notes"].dump(), HasSubstr("the reading was interrupted"));
    const uint64_t events = report["coverage"]["events"];
    EXPECT_LT(events, kEvents);
    EXPECT_EQ(report["range"]["whole"], false);
  }
}

TEST_F(EngineCommandTest, TheTextSaysThatItWasInterrupted) {
  MakeTrace({.events = 1'000'000});
  Start(Report({}), {.stalled = true});
  InterruptAtTheStall();
  EXPECT_EQ(WEXITSTATUS(Wait()), 130);
  const std::string text = Content(Path("out"));
  EXPECT_THAT(text, ContainsRegex("! the reading was interrupted: this is of the"));
  EXPECT_THAT(text, ContainsRegex("Only +blocks allocated from "));
  EXPECT_THAT(text, Not(HasSubstr("every block was freed")));
}

// Sites that are chosen by names need a second reading, which is no longer than the first.
TEST_F(EngineCommandTest, TheSecondReadingMayBeInterruptedAsWell) {
  MakeTrace({.events = 1'000'000});
  Start(Report({"--format", "json"}), {.stalled = true, .at = 0});
  ASSERT_EQ(WEXITSTATUS(Wait()), 0);
  const int reads = std::stoi(Content(Path("reads")));
  ASSERT_GT(reads, 8);
  Start(Report({"--format", "json", "--match", "."}), {.stalled = true, .at = reads + reads / 2});
  InterruptAtTheStall();
  EXPECT_EQ(WEXITSTATUS(Wait()), 130);
  const auto report = Json();
  EXPECT_EQ(report["coverage"]["interrupted"], true);
  EXPECT_LT(double{report["coverage"]["read_share"]}, 0.95);
}

TEST_F(EngineCommandTest, BeforeTheBeginOfARangeThereIsNothingToReport) {
  MakeTrace({.events = 1'000'000});
  Start(Report({"--from", "99%"}), {.stalled = true});
  InterruptAtTheStall();
  EXPECT_EQ(WEXITSTATUS(Wait()), 130);
  EXPECT_EQ(Content(Path("out")), "");
}

// The second of two traces is the long one.
TEST_F(EngineCommandTest, CtrlCReportsTheTracesThatWereRead) {
  MakeTrace({.events = 10'000}, "a.mtr");
  MakeTrace({.events = 3'000'000}, "b.mtr");
  Words both = {"report", "--jobs", "1", "--format", "json", Path("a.mtr"), Path("b.mtr")};
  GiveAnotherId("b.mtr");
  Start(both, {.stalled = true, .at = 0});
  ASSERT_EQ(WEXITSTATUS(Wait()), 0);
  ASSERT_EQ(Json()["coverage"]["interrupted"], false);
  const int reads = std::stoi(Content(Path("reads")));
  Start(both, {.stalled = true, .at = reads * 2 / 3});
  InterruptAtTheStall();
  EXPECT_EQ(WEXITSTATUS(Wait()), 130);
  const auto report = Json();
  EXPECT_EQ(report["coverage"]["interrupted"], true);
  EXPECT_EQ(report["coverage"]["not_read"], 1);
  EXPECT_EQ(report["coverage"]["traces"], 1);
  EXPECT_EQ(report["coverage"]["events"], 10'000);

  // Of one that was not read to its end there is nothing.
  std::swap(both[5], both[6]);
  Start(both, {.stalled = true, .at = reads / 2});
  InterruptAtTheStall();
  EXPECT_EQ(WEXITSTATUS(Wait()), 130);
  EXPECT_EQ(Content(Path("out")), "");
}

// The pass that makes an index is read like any other.
TEST_F(EngineCommandTest, CtrlCWhileTheIndexIsMadeReportsWhatWasRead) {
  constexpr uint64_t kEvents = 3'000'000;
  MakeTrace({.events = kEvents});
  for (const char* question : {"--to=99%", "--series"}) {
    Start({"report", "--index", Path("kept"), "--jobs", "1", "--format", "json", question,
           Path("long.mtr")},
          {.stalled = true, .at = 12});
    InterruptAtTheStall();
    EXPECT_EQ(WEXITSTATUS(Wait()), 130) << question;
    EXPECT_TRUE(fs::is_empty(Path("kept")));
    const auto json = Json();
    if (question == std::string("--series")) {
      EXPECT_GT(json["sites"].size(), 0u);
    } else {
      EXPECT_EQ(json["coverage"]["interrupted"], true);
      const double share = json["coverage"]["read_share"], events = json["coverage"]["events"];
      EXPECT_GT(share, 0.01);
      EXPECT_NEAR(events / static_cast<double>(kEvents), share, 0.03);
    }
  }
}

// It was not read that there is none.
TEST_F(EngineCommandTest, BeforeTheScanThatIsAskedForThereIsNothingToReport) {
  MakeTrace({.events = 1'000'000});
  std::ofstream(Path("known.supp")) << "{\n  known\n  Memcheck:Leak\n  fun:malloc\n}\n";
  for (const Words& question : std::vector<Words>{
           {"--tables", "leaks", "--scan", "1"},
           {"--suppressions", Path("known.supp")},
           {"--graph"},
           {"--why", "1"},
           {"--who-points-at", "0x1000"},
           {"--format", "valgrind"},
           {"--format", "valgrind-xml"}}) {
    Start(Report(question), {.stalled = true, .terminal = true});
    InterruptAtTheStall();
    const std::string said = ReadTerminal();
    EXPECT_EQ(WEXITSTATUS(Wait()), 130) << question[0];
    EXPECT_THAT(said, HasSubstr("memtrace: the reading was interrupted before it came to what was "
                                "asked for: there is nothing to report"));
    for (const char* not_known : {"no finished scan", "has none", "was not scanned"}) {
      EXPECT_THAT(said, Not(HasSubstr(not_known))) << question[0];
    }
    EXPECT_EQ(Content(Path("out")), "");
  }
}

// A report that needs no scan is of what was read, and says as much of the scans.
TEST_F(EngineCommandTest, InterruptedItDoesNotSayThatNoScanWasTaken) {
  MakeTrace({.events = 1'000'000});
  Start(Report({"--format", "json"}), {.stalled = true});
  InterruptAtTheStall();
  EXPECT_EQ(WEXITSTATUS(Wait()), 130);
  const auto report = Json();
  EXPECT_EQ(report["leak_scan"], nullptr);
  EXPECT_EQ(report["no_leak_scan"], "the reading was interrupted, and had come to none");
}

TEST_F(EngineCommandTest, ASecondCtrlCEndsItAtOnce) {
  MakeTrace({.events = 1'000'000});
  Start(Report({}, "2"), {.stalled = true});
  AwaitTheStall();
  // Two that come together count as one.
  int status = 0;
  while (waitpid(process_, &status, WNOHANG) == 0) {
    kill(process_, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  process_ = -1;
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_EQ(Content(Path("out")), "");
}

}  // namespace
}  // namespace memtrace::report
