// Real programs, unmodified, as Debian ships them: they behave under the library as
// without it, every one of their allocations is in the trace, and the report
// names their functions. See real_programs.h for what is checked of each.
//
// Debian's binaries are stripped; functions are named from the symbols that they or
// their libraries export. git exports none: of it the report has module and offset.

#include "tests/e2e/real_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <regex>
#include <sstream>
#include <thread>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

constexpr char kJsonWorkload[] = R"script(
import json
rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i % 7)], "value": i / 3}
        for i in range(8000)]
text = json.dumps(rows)
again = json.loads(text)
assert again == rows
print(len(text), sum(len(row["tags"]) for row in again))
)script";

TEST(RealProgramsTest, PythonOnJsonWithPlainMalloc) {
  TempDir work;
  WriteFile(work / "json_workload.py", kJsonWorkload);
  const Command command = {
      .arguments = {"/usr/bin/python3", "-s", "-B", work / "json_workload.py"},
      .environment = {{"PYTHONMALLOC", "malloc"}, {"PYTHONHASHSEED", "0"}}};
  const Json report = TraceRealProgram(command, ProgramName("/usr/bin/python3"));
  EXPECT_GT(report.at("totals").at("allocations"), 100000);
  EXPECT_TRUE(NamesFunction(report, "^_?Py(Dict|Unicode|List|Eval|Object)_?"));
}

TEST(RealProgramsTest, SqliteInMemory) {
  TempDir work;
  WriteFile(work / "input.sql", R"script(
CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT, number REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  INSERT INTO t SELECT i, 'word ' || (i * 7919 % 1000), i / 3.0 FROM n;
CREATE INDEX by_word ON t (word);
SELECT word, count(*), round(sum(number), 3) FROM t GROUP BY word ORDER BY 2 DESC, 1 LIMIT 5;
SELECT count(*) FROM t a JOIN t b ON a.word = b.word WHERE a.id < 500 AND b.id < 500;
UPDATE t SET number = number * 2 WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
SELECT count(*), round(total(number), 3) FROM t;
)script");
  const Command command = {.arguments = {"sqlite3", "-batch", ":memory:"},
                           .input = work / "input.sql"};
  const Json report = TraceRealProgram(command, "sqlite3");
  EXPECT_GT(report.at("totals").at("allocations"), 1000);
  EXPECT_TRUE(NamesFunction(report, "^sqlite3_(exec|step|prepare|open)"));
  ExpectSameCountInARunOfItsOwn(command, "sqlite3");
}

class GitTest : public ::testing::Test {
 protected:
  static Command Git(const std::string& directory, Words words) {
    words.insert(words.begin(), {"git", "-c", "init.defaultBranch=main", "-c", "gc.auto=0"});
    return {.arguments = words,
            .environment = {{"GIT_AUTHOR_NAME", "A"},
                            {"GIT_AUTHOR_EMAIL", "a@example.com"},
                            {"GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"},
                            {"GIT_COMMITTER_NAME", "C"},
                            {"GIT_COMMITTER_EMAIL", "c@example.com"},
                            {"GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z"},
                            {"GIT_CONFIG_NOSYSTEM", "1"},
                            {"GIT_TERMINAL_PROMPT", "0"}},
            .directory = directory};
  }

  // What a chain of git commands says, on a repository that is made anew. `wrap` puts
  // each command under the library, or does not.
  template <typename Wrap>
  static std::string Session(Wrap wrap) {
    TempDir work;
    const std::string repository = work / "repository";
    std::string said;
    const auto run = [&](const std::string& directory, const Words& words) {
      const Result result = RunCommand(wrap(Git(directory, words)));
      std::string err = result.err;  // names of the directory differ
      for (size_t at; (at = err.find(work.path())) != std::string::npos;) {
        err.replace(at, work.path().size(), "WORK");
      }
      said += words[0] + ": " + result.Outcome() + "\n" + result.out + err;
    };
    run(work.path(), {"init", "-q", repository});
    for (int commit = 0; commit < 4; ++commit) {
      for (int file = 0; file < 40; ++file) {
        std::string content;
        for (int line = 0; line < 60; ++line) {
          content += std::to_string(file * 131 + line * (line % 9 == commit ? commit : 1)) + "\n";
        }
        WriteFile(repository + "/file_" + std::to_string(file) + ".txt", content);
      }
      run(repository, {"add", "-A"});
      run(repository, {"commit", "-q", "-m", "commit " + std::to_string(commit)});
    }
    run(work.path(), {"clone", "-q", "--no-local", repository, work / "clone"});
    run(work / "clone", {"log", "--stat", "--format=%H %s"});
    run(repository, {"repack", "-a", "-d", "-f", "-q"});
    run(repository, {"fsck", "--full", "--no-progress"});
    run(repository, {"count-objects", "-v"});
    return said;
  }
};

TEST_F(GitTest, InitCommitCloneAndRepack) {
  const std::string plain = Session([](Command command) { return command; });
  EXPECT_THAT(plain, HasSubstr("repack: exit 0"));
  EXPECT_THAT(plain, HasSubstr("in-pack: 1"));
  TempDir traces;
  EXPECT_EQ(Session([&](Command command) { return Traced(command, traces.path()); }), plain);
  Evidence evidence;
  EXPECT_EQ(Session([&](Command command) {
              return TracedAndCounted(command, evidence.traces.path(), evidence.counts.path());
            }),
            plain);
  ExpectTracesEqualCounts(evidence);
  EXPECT_GT(FilesIn(evidence.traces.path(), ".mtr").size(), 15u) << "git starts helpers of its own";

  bool names_zlib = false, has_offsets = false;
  for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
    if (file.rfind("git.", 0) != 0) continue;
    const Json report = Report(traces / file, {"--top", "1000"});
    names_zlib = names_zlib || NamesFunction(report, "^(deflate|inflate)Init");
    for (const Json& site : report.at("sites")) {
      for (const Json& frame : site.at("stack")) {
        has_offsets = has_offsets || (frame.value("module", "").ends_with("/git") &&
                                      frame.contains("offset"));
      }
    }
  }
  EXPECT_TRUE(names_zlib);
  EXPECT_TRUE(has_offsets);
}

TEST(RealProgramsTest, CompilerOnAHeaderHeavyFile) {
  const Result found = RunCommand({.arguments = {"g++", "-print-prog-name=cc1plus"}});
  ASSERT_EQ(found.Outcome(), "exit 0");
  const std::string cc1plus = found.out.substr(0, found.out.find('\n'));
  TempDir work;
  WriteFile(work / "headers.cc", HeaderHeavySource());
  const Command command = {
      .arguments = {cc1plus, "-quiet", "-imultiarch", "x86_64-linux-gnu", "-D_GNU_SOURCE",
                    work / "headers.cc", "-O1", "-std=c++20", "-o", "-"}};
  const Json report = TraceRealProgram(command, "cc1plus");
  EXPECT_GT(report.at("totals").at("allocations"), 100000);
  EXPECT_TRUE(NamesFunction(report, "^(toplev::main|c_common_parse_file|cpp_get_token|"
                                    "cpp_create_reader|execute_one_pass|init_)"));
}

TEST(RealProgramsTest, RedisServerUnderItsBenchmark) {
  // What a client sees, at the end of the same load.
  const auto serve = [](auto wrap, pid_t* pid) {
    TempDir work;
    const std::string socket = work / "socket";
    Process server(wrap(Command{
        .arguments = {"redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                      "--appendonly", "no", "--dir", work.path(), "--logfile", work / "log",
                      "--daemonize", "no"}}));
    *pid = server.pid();
    const auto ask = [&](Words words) {
      words.insert(words.begin(), {"redis-cli", "-s", socket});
      return RunCommand({.arguments = words}).out;
    };
    for (int i = 0; i < 1000 && ask({"ping"}) != "PONG\n"; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const Result load = RunCommand({.arguments = {"redis-benchmark", "-s", socket, "-q", "-n",
                                                  "20000", "-P", "16", "-t",
                                                  "set,get,lpush,hset,sadd"}});
    std::string seen = "load: " + load.Outcome() + "\n";
    for (const Words& question :
         {Words{"set", "greeting", "hello"}, {"append", "greeting", " world"}, {"get", "greeting"},
          {"dbsize"}, {"llen", "mylist"}, {"hlen", "myhash"}, {"scard", "myset"},
          {"eval", "local t = {} for i = 1, 100 do t[i] = i end return #t", "0"},
          {"shutdown", "nosave"}}) {
      seen += ask(question);
    }
    const Result ended = server.Wait(30);
    return seen + ended.Outcome() + "\n" + ended.out + ended.err;
  };
  pid_t pid = 0;
  const std::string plain = serve([](Command command) { return command; }, &pid);
  EXPECT_THAT(plain, HasSubstr("load: exit 0\nOK\n11\nhello world\n"));
  TempDir traces;
  EXPECT_EQ(serve([&](Command command) { return Traced(command, traces.path()); }, &pid), plain);
  // Debian's redis-server is a link to the program whose name the trace has.
  const Json report = Report(TraceOf(traces.path(), ProgramName("redis-server"), pid));
  EXPECT_GT(report.at("totals").at("allocations"), 20000);
  EXPECT_TRUE(
      NamesFunction(report, "^(processInputBuffer|createClient|zmalloc|aeMain|dictExpand)"));
  EXPECT_TRUE(NamesFunction(report, "^main$"));

  Evidence evidence;
  EXPECT_EQ(serve(
                [&](Command command) {
                  return TracedAndCounted(command, evidence.traces.path(), evidence.counts.path());
                },
                &pid),
            plain);
  ExpectTracesEqualCounts(evidence);
}

TEST(RealProgramsTest, PerlOnHashesAndRegularExpressions) {
  const Command command = {
      .arguments = {"/usr/bin/perl", "-e", R"script(
my %count; my @words;
for my $i (1 .. 5000) { push @words, "word" . ($i * 7919 % 997) }
$count{$_}++ for @words;
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 4];
print "$_ $count{$_}\n" for @top;
my $text = join ",", @words; my $n = 0; $n++ while $text =~ /w(or)d(\d+)/g;
print length($text), " $n\n"; exit 3;
)script"},
      .environment = {{"PERL_HASH_SEED", "0"}, {"PERL_PERTURB_KEYS", "0"}}};
  const Json report = TraceRealProgram(command, "perl");
  EXPECT_GT(report.at("totals").at("allocations"), 5000);
  EXPECT_EQ(report.at("process").at("end"), "exit");
  EXPECT_TRUE(NamesFunction(report, "^(Perl_|perl_)"));
  ExpectSameCountInARunOfItsOwn(command, "perl");
}

// Debian's bash is built without its own malloc and takes libc's; the trace has all
// of its allocations. A bash of its own malloc would show none of them, and this test
// would say so.
TEST(RealProgramsTest, BashWithSubshellsAndPipes) {
  const Command command = {.arguments = {"/bin/bash", "-c", R"script(
declare -A map
for ((i = 0; i < 500; ++i)); do map["key$i"]="value $((i * i))"; done
sum=0; for key in "${!map[@]}"; do (( sum += ${#map[$key]} )); done
echo "$sum ${#map[@]}"
lines=$(for i in 1 2 3; do echo "line $i"; done | tr a-z A-Z)
echo "${lines//LINE/row}"
(exit 4) || echo "subshell $?"
function f { local x=$1; [[ $x -gt 0 ]] && f $((x - 1)); }; f 50
exit 7
)script"}};
  const Json report = TraceRealProgram(command, "bash");
  EXPECT_GT(report.at("totals").at("allocations"), 5000);
  EXPECT_TRUE(
      NamesFunction(report, "^(xmalloc|execute_command|make_variable_value|parse_command)"));
  EXPECT_EQ(report.at("process").at("end"), "exit");
}

TEST(RealProgramsTest, TarWithThreadedXz) {
  TempDir work;
  std::string content;
  for (int i = 0; i < 200000; ++i) content += std::to_string(i * 2654435761u % 100003) + " ";
  for (int i = 0; i < 3; ++i) WriteFile(work / ("file" + std::to_string(i)), content);
  const auto archive = [&](auto wrap, pid_t* pid) {
    const std::string out = work / "archive.tar.xz";
    const Result result = RunCommand(wrap(Command{
        .arguments = {"tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0",
                      "--numeric-owner", "-I", "xz -T2 --block-size=262144 -1", "-cvf", out,
                      "file0", "file1", "file2"},
        .directory = work.path()}));
    *pid = result.pid;
    return result.Outcome() + "\n" + result.out + result.err + ReadFile(out);
  };
  pid_t pid = 0;
  const std::string plain = archive([](Command command) { return command; }, &pid);
  EXPECT_THAT(plain.substr(0, 40), HasSubstr("exit 0\nfile0\n"));
  TempDir traces;
  EXPECT_TRUE(archive([&](Command command) { return Traced(command, traces.path()); }, &pid) ==
              plain);
  const Json tar = Report(TraceOf(traces.path(), "tar", pid));
  EXPECT_TRUE(NamesFunction(tar, "^(argp_parse|_?obstack_begin|main)"));
  const Json xz = Report(TraceOf(traces.path(), "xz"));
  EXPECT_TRUE(NamesFunction(xz, "^lzma_"));
  EXPECT_GE(xz.at("threads").size(), 3u) << "main and two that compress";

  Evidence evidence;
  EXPECT_TRUE(archive(
                  [&](Command command) {
                    return TracedAndCounted(command, evidence.traces.path(),
                                            evidence.counts.path());
                  },
                  &pid) == plain);
  ExpectTracesEqualCounts(evidence);
}

TEST(RealProgramsTest, GdbVersion) {
  const Command command = {.arguments = {"gdb", "-nx", "--version"}};
  const Json report = TraceRealProgram(command, "gdb");
  EXPECT_GT(report.at("totals").at("allocations"), 1000);
  EXPECT_TRUE(NamesFunction(report, "^(xmalloc|operator new)"));
}

TEST(RealProgramsTest, NodeOnJson) {
  const Command command = {.arguments = {"node", "-e", R"script(
const rows = Array.from({length: 20000}, (_, i) => ({id: i, name: `row ${i}`, tags: ['a', 'b']}));
const again = JSON.parse(JSON.stringify(rows));
console.log(again.length, Buffer.from(JSON.stringify(again)).length);
const hash = require('crypto').createHash('sha256');
for (const row of again) hash.update(row.name);
console.log(hash.digest('hex'));
process.exitCode = 5;
)script"}};
  const Json report = TraceRealProgram(command, "node");
  EXPECT_GT(report.at("totals").at("allocations"), 10000);
  EXPECT_TRUE(NamesFunction(report, "^(node|v8)::"));
}

}  // namespace
}  // namespace memtrace::e2e
