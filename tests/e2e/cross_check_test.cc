// MEMTRACE_CROSS_CHECK=1: every stack of real programs equals libunwind's; a difference is
// found, counted and shown; and the check hurts no program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/cross_check.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

TEST(CrossCheckTest, Bash) {
  ExpectNoDifference({.arguments = {"/bin/bash", "-c", R"script(
for ((i = 0; i < 50; ++i)); do map["$i"]="value $((i * i))"; done
lines=$(for i in 1 2 3; do echo "line $i"; done | tr a-z A-Z)
echo "${lines//LINE/row}"; (exit 4) || echo "subshell $?"
function f { local x=$1; [[ $x -gt 0 ]] && f $((x - 1)); }; f 30
)script"}},
                     {.checked = 1000});
}

TEST(CrossCheckTest, Perl) {
  ExpectNoDifference({.arguments = {"/usr/bin/perl", "-e", R"script(
my %count; $count{"word" . ($_ * 7919 % 97)}++ for 1 .. 1000;
print join(" ", map { "$_ $count{$_}" } sort keys %count), "\n";
my $text = "w1 w2 w3" x 50; my $n = 0; $n++ while $text =~ /w(\d)/g; print "$n\n";
)script"}},
                     {.checked = 1000});
}

TEST(CrossCheckTest, Git) {
  ExpectNoDifference({.arguments = {"/bin/sh", "-c", R"script(
git init -q . && for n in 1 2 3 4; do
  echo $n >> file && git add file && git -c user.name=a -c user.email=a@b.c commit -q -m $n || exit 1
done && git log --oneline --stat | wc -l && git gc -q && git blame file | wc -l
)script"},
                      .directory = TempDirectory()},
                     {.checked = 2000});
}

TEST(CrossCheckTest, Sqlite) {
  ExpectNoDifference({.arguments = {"sqlite3", ":memory:", R"script(
CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
  INSERT INTO t SELECT i, 'word ' || (i % 10) FROM n;
SELECT word, count(*) FROM t GROUP BY word ORDER BY 2 DESC, 1 LIMIT 3;
)script"}},
                     {.checked = 500});
}

TEST(CrossCheckTest, Python) {
  ExpectNoDifference({.arguments = {"/usr/bin/python3", "-S", "-B", "-c", R"script(
import json, threading
rows = [{"id": i, "name": "row %d" % i} for i in range(200)]
def work(): assert json.loads(json.dumps(rows)) == rows
threads = [threading.Thread(target=work) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(json.dumps(rows)))
)script"},
                      .environment = {{"PYTHONMALLOC", "malloc"}}},
                     {.every = 3, .checked = 5000});
}

TEST(CrossCheckTest, TightPlacesAndForks) {
  const Command command = {.arguments = {TraceePath("allocates_in_tight_places")}};
  const Result plain = RunCommand(command);
  EXPECT_EQ(plain.Outcome(), "exit 5");
  EXPECT_THAT(plain.out, HasSubstr("errno kept\nmask kept\n"));
  ExpectNoDifference(command, {.checked = 2000});
}

// The rule of one function changes under the library's eyes, against all that its rule
// table relies on.
TEST(CrossCheckTest, FindsShowsAndCountsADifference) {
  TempDir traces;
  const Result traced = RunCommand(
      CrossChecked({.arguments = {TraceePath("rewrites_its_unwind_info")}}, traces.path(), 1));
  EXPECT_EQ(traced.Outcome(), "exit 0");
  const std::string trace = TraceOf(traces.path(), "rewrites_its_unwind_info");
  const Json coverage = BriefReport(trace).at("coverage");
  EXPECT_GE(coverage.at("cross_checked"), 8);
  EXPECT_EQ(coverage.at("cross_check_differences"), 3);
  EXPECT_THAT(ReportText(trace), HasSubstr("3 stacks differed from libunwind's"));
  const std::string info = Info(trace);
  EXPECT_THAT(info, HasSubstr("different: from frame 2 on, found by "));
  EXPECT_THAT(info, HasSubstr("#0   both      Allocate ("));
  EXPECT_THAT(info, HasSubstr("#1   both      Through ("));
  EXPECT_THAT(info, HasSubstr("#2   memtrace  main ("));
  EXPECT_THAT(info, HasSubstr("#2   libunwind Decoy ("));
}

// A file that is no library, where libunwind is looked for.
TEST(CrossCheckTest, WithoutLibunwindRecordingGoesOnAndSaysSo) {
  TempDir traces, instead;
  WriteFile(instead / "libunwind-x86_64.so.8", "not a library");
  Command command = CrossChecked({.arguments = {"/bin/sh", "-c", "echo out; /bin/true; exit 3"}},
                                 traces.path(), 1);
  command.environment.emplace_back("LD_LIBRARY_PATH", instead.path());
  const Result traced = RunCommand(command);
  EXPECT_EQ(traced.Outcome(), "exit 3");
  EXPECT_EQ(traced.out, "out\n");
  EXPECT_EQ(traced.err, "memtrace: stacks are not cross-checked: libunwind-x86_64.so.8 cannot be "
                        "opened (Debian: libunwind8)\n")
      << "once, though there was a child";
  const std::string trace = TraceOf(traces.path(), ProgramName("/bin/sh"), traced.pid);
  const Json report = BriefReport(trace);
  EXPECT_EQ(report.at("coverage").at("cross_checked"), 0);
  EXPECT_THAT(report.at("coverage").at("notes").dump(), HasSubstr("not cross-checked"));
  EXPECT_GT(report.at("totals").at("allocations"), 0);
}

}  // namespace
}  // namespace memtrace::e2e
