// Soak: a mixed load of many processes under recording for a long time. What lasts (a worker
// with threads and plugins that come and go, redis-server, a pool of python processes) runs under
// `memtrace run`; what is short (a shell with pipes, perl, sqlite3, the compiler) under the bare
// library, again and again. All the while:
//
//   - every program says what it says without the library;
//   - no event is lost, in any trace;
//   - the memory of the library and of `memtrace run` is as after the warm-up. A few seconds are
//     none for `memtrace run`, which may then hold all that there was to pack.
//
// MEMTRACE_SOAK_SECONDS is how long; else a few seconds. In the long test set it is an hour.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

int SoakSeconds() {
  const char* told = std::getenv("MEMTRACE_SOAK_SECONDS");
  return told == nullptr ? 4 : std::max(4, std::atoi(told));
}

// `memtrace run` buffers what its program's threads have written until blocks are worth packing.
constexpr long kPackerBufferKilobytes = 64 << 10;  // PackerOptions::buffer_bytes
constexpr int kWarmUpSeconds = 600;  // half of it has seen the buffer as full as it becomes

// Kilobytes of a process, by the names of /proc/PID/status. 0 when it is gone.
long StatusKilobytes(pid_t pid, const std::string& name) {
  std::istringstream lines(ReadFile("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) return std::atol(line.c_str() + name.size() + 1);
  }
  return 0;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string process = std::to_string(pid);
  std::istringstream words(ReadFile("/proc/" + process + "/task/" + process + "/children"));
  std::vector<pid_t> children;
  for (pid_t child; words >> child;) children.push_back(child);
  return children;
}

// What coverage says is lost of a trace, in words; empty when nothing is.
std::string Losses(const Json& report) {
  const Json& coverage = report.at("coverage");
  std::string losses;
  for (const char* loss : {"dropped_events", "unordered_events", "lost_blocks"}) {
    if (coverage.at(loss) != 0) losses += " " + std::string(loss) + " " + coverage.at(loss).dump();
  }
  const Json& counters = coverage.at("counters");
  if (counters.value("missed_events", 0) != 0) {
    losses += " missed_events " + counters.at("missed_events").dump();
  }
  return losses;
}

// The bound that README and the design promise: 2 MiB and 256 KiB a thread. Rules of more code
// than most programs have come on top, which is what the third is for.
uint64_t AllowedToolBytes(uint64_t threads_at_once) {
  return (2 << 20) + (threads_at_once << 18) + (3 << 20);
}

constexpr char kPool[] = R"script(
import json, multiprocessing, signal, threading, time

def work(i):
    rows = [{"id": j, "name": "row %d" % j, "tags": ["a", "b"]} for j in range(200)]
    return len(json.loads(json.dumps(rows)))

done = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: done.set())
sums = set()
while not done.is_set():
    with multiprocessing.get_context("fork").Pool(2, signal.signal, (15, signal.SIG_IGN)) as pool:
        for _ in range(20):
            sums.add(sum(pool.map(work, range(4))))
            if done.wait(0.3):
                break
        pool.close()
        pool.join()
print(sums)
)script";

// A program that runs from beginning to end, under `memtrace run`.
class Lasting {
 public:
  Lasting(const std::string& name, const TempDir& traces, Words program, Environment environment)
      : name_(name), trace_(traces / (name + ".mtr")) {
    program.insert(program.begin(), {ToolPath(), "run", "-q", "-o", trace_, "--"});
    process_ = std::make_unique<Process>(
        Command{.arguments = program, .environment = std::move(environment)});
  }

  const std::string& name() const { return name_; }
  const std::string& trace() const { return trace_; }
  pid_t tool() const { return process_->pid(); }
  pid_t program() const {
    const std::vector<pid_t> children = ChildrenOf(tool());
    return children.empty() ? 0 : children.front();
  }
  void Stop() const { process_->Signal(SIGTERM); }
  // `memtrace run` may still have to pack what the program wrote while others had the processors.
  Result Wait() const { return process_->Wait(120 + SoakSeconds() / 4); }

 private:
  std::string name_, trace_;
  std::unique_ptr<Process> process_;
};

// What is run again and again, with what it says.
struct Short {
  std::string name;
  Command command;
  Result plain;
};

std::vector<Short> ShortPrograms(const TempDir& work) {
  WriteFile(work / "program.c", "#include <stdio.h>\n#include <stdlib.h>\n"
            "int main(void) { char* p = malloc(10); printf(\"%d\\n\", p != NULL); free(p); }\n");
  WriteFile(work / "input.sql",
            "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);\n"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)\n"
            "  INSERT INTO t SELECT i, 'word ' || (i * 7919 % 100) FROM n;\n"
            "SELECT word, count(*) FROM t GROUP BY word ORDER BY 2 DESC, 1 LIMIT 5;\n");
  std::vector<Short> programs = {
      {"shell", {.arguments = {"sh", "-c", "seq 3000 | sort -rn | tr 1 x | grep x | tail -n 2; "
                                           "for i in 1 2 3; do (echo $i | cat); done"}}, {}},
      {"perl", {.arguments = {"perl", "-e",
                              "my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1 .. 30000; "
                              "for (1 .. 3) { my $p = fork; if (!$p) { my @a = (1) x 1000; "
                              "exit scalar(@a) == 1000 ? 7 : 1 } waitpid $p, 0; print $? >> 8, "
                              "\"\\n\" } print length(join '', values %h), \"\\n\""}}, {}},
      {"sqlite3", {.arguments = {"sqlite3", "-batch", ":memory:"}, .input = work / "input.sql"},
       {}},
      {"compiler", {.arguments = {"gcc", "-O1", "-c", "-o", work / "program.o", work / "program.c"}},
       {}},
      {"python", {.arguments = {"/usr/bin/python3", "-s", "-B", "-c",
                                "import subprocess\n"
                                "print(subprocess.run(['echo', 'x'], capture_output=True).stdout)"},
                  .environment = {{"PYTHONMALLOC", "malloc"}}}, {}},
  };
  for (Short& program : programs) program.plain = RunCommand(program.command);
  return programs;
}

// One of each, traced; its traces are looked at and removed. The number of events.
uint64_t RunShort(const Short& program) {
  TempDir traces;
  const Result traced = RunCommand(Traced(program.command, traces.path()));
  EXPECT_EQ(traced.Outcome(), program.plain.Outcome()) << program.name;
  EXPECT_EQ(traced.out, program.plain.out) << program.name;
  EXPECT_EQ(traced.err, program.plain.err) << program.name;
  uint64_t events = 0;
  for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
    const Json report = BriefReport(traces / file);
    EXPECT_EQ(Losses(report), "") << program.name << ": " << file;
    events += report.at("coverage").at("events").get<uint64_t>();
  }
  EXPECT_GT(events, 0u) << program.name;
  return events;
}

// Kilobytes of one process, over the time of the soak.
using Samples = std::vector<long>;

long Most(Samples::const_iterator begin, Samples::const_iterator end) {
  return *std::max_element(begin, end);
}

TEST(SoakTest, LosesNothingAndItsMemoryIsFlat) {
  const int total = SoakSeconds();
  TempDir work, traces;
  const std::vector<Short> programs = ShortPrograms(work);
  const std::string socket = work / "socket";

  std::vector<Lasting> lasting;
  lasting.emplace_back("worker", traces,
                       Words{TraceePath("soak_worker"), MEMTRACE_BUILD_DIR "/tests/tracees/plugins"},
                       Environment{});
  lasting.emplace_back("redis", traces,
                       Words{"redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                             "--appendonly", "no", "--dir", work.path(), "--logfile", work / "log"},
                       Environment{});
  lasting.emplace_back("pool", traces, Words{"/usr/bin/python3", "-s", "-B", "-c", kPool},
                       Environment{{"PYTHONMALLOC", "malloc"}});

  std::map<std::string, Samples> memory;
  const auto sample = [&] {
    for (const Lasting& program : lasting) {
      const pid_t pid = program.program();
      ASSERT_NE(pid, 0) << program.name() << " has ended: " << program.Wait().err;
      memory[program.name() + ": memtrace run"].push_back(StatusKilobytes(program.tool(), "VmRSS"));
      // Only this one has a heap of its own that is known to stay as it is.
      if (program.name() != "worker") continue;
      memory["worker: resident"].push_back(StatusKilobytes(pid, "VmRSS"));
      memory["worker: mapped"].push_back(StatusKilobytes(pid, "VmSize"));
    }
  };
  uint64_t events = 0, rounds = 0;
  const Clock::time_point end = Clock::now() + seconds(total);
  const auto pause = std::chrono::milliseconds(total > 60 ? 3000 : 200);
  while ((Clock::now() < end || rounds < 3) && !HasFailure()) {
    for (const Short& program : programs) {
      events += RunShort(program);
      ASSERT_NO_FATAL_FAILURE(sample());
    }
    const Result load = RunCommand({.arguments = {"redis-benchmark", "-s", socket, "-q", "-n",
                                                  "4000", "-c", "5", "-P", "4", "-r", "1000",
                                                  "-t", "set,get,lpush,lpop,hset,sadd"}});
    EXPECT_EQ(load.Outcome(), "exit 0") << load.err;
    ++rounds;
    std::this_thread::sleep_for(pause);
  }

  for (const Lasting& program : lasting) program.Stop();
  for (const Lasting& program : lasting) {
    const Result result = program.Wait();
    EXPECT_EQ(result.Outcome(), "exit 0") << program.name() << ": " << result.err;
    EXPECT_TRUE(program.name() != "worker" || result.out == "ok\n") << result.out;
    EXPECT_TRUE(program.name() != "pool" || result.out == "{800}\n") << result.out;
  }
  size_t traced_processes = 0;
  std::map<std::string, long> unpacked;  // kilobytes that `memtrace run` may hold at the end only
  for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
    const Json report = BriefReport(traces / file);
    ++traced_processes;
    events += report.at("coverage").at("events").get<uint64_t>();
    EXPECT_EQ(Losses(report), "") << file;
    EXPECT_EQ(report.at("process").at("end"), "exit") << file;
    if (file == "worker.mtr" || file == "redis.mtr" || file == "pool.mtr") {
      const uint64_t bytes = report.at("coverage").at("tool_memory_bytes");
      std::printf("%s: %lu events, %.1f MiB of the library's, %zu threads in all\n", file.c_str(),
                  report.at("coverage").at("events").get<unsigned long>(),
                  static_cast<double>(bytes) / (1 << 20), report.at("threads").size());
      EXPECT_LE(bytes, AllowedToolBytes(8)) << file;
      EXPECT_GT(report.at("coverage").at("events"), 1000) << file;
      if (total >= kWarmUpSeconds) continue;
      const long events_kilobytes = report.at("coverage").at("events").get<long>() * 16 / 1024;
      unpacked[file.substr(0, file.find('.')) + ": memtrace run"] =
          std::min(events_kilobytes, kPackerBufferKilobytes);
    }
  }
  EXPECT_GE(traced_processes, 3u);
  for (const auto& [what, samples] : memory) {
    const auto size = static_cast<ptrdiff_t>(samples.size());
    const long warm = Most(samples.begin(), samples.begin() + size / 2);
    const long last = Most(samples.end() - size / 4, samples.end());
    std::printf("%s: at most %ld KiB in the first half, %ld KiB in the last quarter\n",
                what.c_str(), warm, last);
    ASSERT_GT(warm, 0) << what;
    // Of the worker: pages are touched late, and a thread may start a new stretch of an arena.
    // `memtrace run` holds what it has read and not packed yet, more when the processor is busy,
    // and something of each process that it followed (15 KiB, measured over 600 of them).
    const long slack = what.ends_with("memtrace run")
                           ? 8192 + 24 * static_cast<long>(traced_processes)
                           : 1024;
    EXPECT_LE(last, warm + slack + unpacked[what] + warm / 20) << what;
  }
  std::printf("%d s, %lu rounds of short programs, %lu events in all\n", total,
              static_cast<unsigned long>(rounds), static_cast<unsigned long>(events));
}

}  // namespace
}  // namespace memtrace::e2e
