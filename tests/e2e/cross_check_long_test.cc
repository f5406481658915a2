// The cross-check on large programs, each stack or every seventh: compilers, a debugger, a
// JavaScript engine, a server under load, programs with windows that nobody sees, users of
// hand-written assembly. docs/stack-capture.md has the table of what this printed.
//
// Part of the long test set. A program that is not installed is skipped.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/e2e/cross_check.h"
#include "tests/e2e/harness.h"
#include "tests/e2e/real_programs.h"
#include "tests/long_run.h"

namespace memtrace::e2e {
namespace {

const std::string kQt = "/usr/lib/x86_64-linux-gnu/qt5/examples/widgets/";

class CrossCheckLongTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!InLongRun()) GTEST_SKIP() << "set MEMTRACE_LONG_TESTS=1";
  }
  static bool Installed(const std::string& program) {
    return RunCommand({.arguments = {"/bin/sh", "-c", "command -v " + program}}).exit_status == 0;
  }
};
#define NEEDS(program) \
  if (!Installed(program)) GTEST_SKIP() << program << " is not installed"

std::string HeaderHeavyFile() {
  const std::string file = TempDirectory() + "/headers.cc";
  WriteFile(file, HeaderHeavySource());
  return file;
}

TEST_F(CrossCheckLongTest, Cc1plus) {
  const Result found = RunCommand({.arguments = {"g++", "-print-prog-name=cc1plus"}});
  ExpectNoDifference({.arguments = {found.out.substr(0, found.out.find('\n')), "-quiet",
                                    "-imultiarch", "x86_64-linux-gnu", "-D_GNU_SOURCE",
                                    HeaderHeavyFile(), "-O1", "-std=c++20", "-o", "-"},
                      .timeout_seconds = 600},
                     {.every = 7, .checked = 100'000});
}

TEST_F(CrossCheckLongTest, Clang) {
  NEEDS("clang++");
  ExpectNoDifference({.arguments = {"clang++", "-c", "-O1", "-std=c++17", HeaderHeavyFile(), "-o",
                                    "/dev/null"},
                      .timeout_seconds = 600},
                     {.every = 7, .checked = 50'000});
}

TEST_F(CrossCheckLongTest, Gdb) {
  NEEDS("gdb");
  ExpectNoDifference({.arguments = {"gdb", "-nx", "-batch", "-ex", "info functions main", "-ex",
                                    "python print(sum(range(1000)))", "/bin/bash"}},
                     {.checked = 10'000});
}

// V8's builtins and the code it makes have no unwind information.
TEST_F(CrossCheckLongTest, Node) {
  NEEDS("node");
  ExpectNoDifference({.arguments = {"node", "-e", R"script(
const rows = Array.from({length: 5000}, (_, i) => ({id: i, name: `row ${i}`}));
const again = JSON.parse(JSON.stringify(rows));
const hash = require('crypto').createHash('sha256');
for (const row of again) hash.update(row.name);
console.log(again.length, hash.digest('hex'));
)script"},
                      .timeout_seconds = 600},
                     {.checked = 15'000, .marked = true});
}

TEST_F(CrossCheckLongTest, RedisServerUnderItsBenchmark) {
  NEEDS("redis-server");
  TempDir work, traces;
  const std::string socket = work / "socket";
  Process server(CrossChecked(
      {.arguments = {"redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                     "--appendonly", "no", "--dir", work.path(), "--logfile", work / "log"}},
      traces.path(), 1));
  const auto ask = [&](Words words) {
    words.insert(words.begin(), {"redis-cli", "-s", socket});
    return RunCommand({.arguments = words}).out;
  };
  for (int i = 0; i < 500 && ask({"ping"}) != "PONG\n"; ++i) usleep(20'000);
  EXPECT_EQ(RunCommand({.arguments = {"redis-benchmark", "-s", socket, "-q", "-n", "20000", "-P",
                                      "16", "-t", "set,get,lpush,hset,sadd,zadd"},
                        .timeout_seconds = 300})
                .Outcome(),
            "exit 0");
  EXPECT_EQ(ask({"eval", "local t = {} for i = 1, 1000 do t[i] = tostring(i) end return #t", "0"}),
            "1000\n");
  ask({"shutdown", "nosave"});
  EXPECT_EQ(server.Wait(60).Outcome(), "exit 0");
  ExpectNoDifferenceIn(traces.path(), "redis-server", {.checked = 50'000});
}

// They would run for ever: timeout ends them, and what was counted is in the trace.
TEST_F(CrossCheckLongTest, QtPrograms) {
  for (const std::string program : {"widgets/styles/styles", "richtext/textedit/textedit",
                                    "painting/affine/affine"}) {
    NEEDS(kQt + program);
    ExpectNoDifference({.arguments = {"timeout", "-s", "INT", "10", kQt + program},
                        .environment = {{"QT_QPA_PLATFORM", "offscreen"}}},
                       {.checked = 10'000, .same_behaviour = false});
  }
}

TEST_F(CrossCheckLongTest, GtkProgram) {
  NEEDS("gtk3-widget-factory");
  NEEDS("xvfb-run");
  TempDir traces;
  const Command command = CrossChecked(
      {.arguments = {"timeout", "-s", "TERM", "25", "gtk3-widget-factory"}}, traces.path(), 1);
  std::string words = "exec env";
  for (const auto& [name, value] : command.environment) words += " " + name + "=" + value;
  for (const std::string& word : command.arguments) words += " " + word;
  RunCommand({.arguments = {"xvfb-run", "-a", "/bin/sh", "-c", words}});
  ExpectNoDifferenceIn(traces.path(), "gtk3-widget-factory", {.checked = 50'000});
}

TEST_F(CrossCheckLongTest, Ffmpeg) {
  NEEDS("ffmpeg");
  const std::string file = TempDirectory() + "/test.mkv";
  ExpectNoDifference({.arguments = {"ffmpeg", "-v", "error", "-f", "lavfi", "-i",
                                    "testsrc=size=640x360:rate=25:duration=4", "-c:v", "libx264",
                                    "-y", file}},
                     {.checked = 1000});
  ExpectNoDifference({.arguments = {"ffmpeg", "-v", "error", "-i", file, "-vf", "scale=320:180",
                                    "-f", "null", "-"}},
                     {.checked = 1000});
}

TEST_F(CrossCheckLongTest, Openssl) {
  NEEDS("openssl");
  ExpectNoDifference({.arguments = {"openssl", "genrsa", "2048"}, .timeout_seconds = 300},
                     {.checked = 5000, .same_behaviour = false});
  ExpectNoDifference({.arguments = {"/bin/sh", "-c",
                                    "openssl rand 100000 | openssl enc -aes-256-gcm -k x 2>&1 | "
                                    "wc -l; head -c 100000 /dev/zero | openssl dgst -sha512"}},
                     {.checked = 5000, .same_behaviour = false});
}

TEST_F(CrossCheckLongTest, PythonAndSqliteAtLength) {
  ExpectNoDifference({.arguments = {"/usr/bin/python3", "-S", "-B", "-c", R"script(
import json
rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i % 7)]} for i in range(4000)]
assert json.loads(json.dumps(rows)) == rows
)script"},
                      .environment = {{"PYTHONMALLOC", "malloc"}},
                      .timeout_seconds = 600},
                     {.checked = 100'000});
  ExpectNoDifference({.arguments = {"sqlite3", ":memory:", R"script(
CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
  INSERT INTO t SELECT i, 'word ' || (i % 100) FROM n;
CREATE INDEX w ON t (word);
SELECT count(*) FROM t a JOIN t b ON a.word = b.word WHERE a.id < 500 AND b.id < 500;
)script"},
                      .timeout_seconds = 600},
                     {.checked = 10'000});
}

}  // namespace
}  // namespace memtrace::e2e
