// Programs that cannot be traced: `memtrace run` refuses them in one line before anything
// runs; under LD_PRELOAD alone they run as without, and the library says in one line that it
// stays off, where any code of it runs at all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kProgram[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "int main(void) { char* text = strdup(\"runs\"); puts(text); free(text); return 4; }\n";

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

struct Build {
  const char* name;
  Words compiler;         // the command, without files
  const char* refusal;    // what `memtrace run` says
  const char* stays_off;  // what the library says under LD_PRELOAD alone; "": not its own line
  // A runtime that ends a program where it is not the first library, or ld.so's own line.
  const char* others_line = "";
};

class RefusalsTest : public ::testing::TestWithParam<Build> {};

TEST_P(RefusalsTest, InOneLineAndTheProgramIsNotHurt) {
  const Build& build = GetParam();
  TempDir directory;
  WriteFile(directory / "program.c", kProgram);
  const std::string program = directory / "program";
  Words compile = build.compiler;
  for (const std::string& word : {directory / "program.c", std::string("-o"), program}) {
    compile.push_back(word);
  }
  const Result built = RunCommand({.arguments = compile});
  if (built.exit_status != 0) GTEST_SKIP() << "cannot build it here: " << built.err.substr(0, 300);
  const Result plain = RunCommand({.arguments = {program}});
  if (plain.Outcome() != "exit 4") GTEST_SKIP() << "does not run here even without us: " << plain.err;

  for (const bool strip : {false, true}) {
    SCOPED_TRACE(strip ? "stripped" : "as built");
    if (strip) {
      ASSERT_EQ(RunCommand({.arguments = {"strip", program}}).Outcome(), "exit 0");
    }
    TempDir traces;
    const Result run = RunCommand(
        {.arguments = {ToolPath(), "run", "-o", traces / "program.mtr", program}});
    EXPECT_EQ(run.Outcome(), "exit 2");
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(StartsWith("memtrace: cannot trace "), HasSubstr(build.refusal)));
    EXPECT_EQ(Lines(run.err), 1u) << run.err;

    const Result bare = RunCommand(Traced({.arguments = {program}}, traces.path()));
    EXPECT_THAT(FilesIn(traces.path()), IsEmpty());
    if (build.others_line[0] != 0) {
      EXPECT_THAT(bare.err, HasSubstr(build.others_line));
      continue;
    }
    EXPECT_EQ(bare.Outcome(), plain.Outcome());
    EXPECT_EQ(bare.out, plain.out);
    if (build.stays_off[0] == 0) {
      EXPECT_EQ(bare.err, "");
      continue;
    }
    EXPECT_THAT(bare.err, AllOf(StartsWith("memtrace: this program "), HasSubstr(build.stays_off),
                                HasSubstr("; it runs untraced (")));
    EXPECT_EQ(Lines(bare.err), 1u) << bare.err;
  }
}

const Build kBuilds[] = {
    {"GccAsan", {"gcc", "-fsanitize=address"}, "with AddressSanitizer", "",
     "ASan runtime does not come first"},
    {"GccAsanStatic", {"gcc", "-fsanitize=address", "-static-libasan"}, "anitizer", "with a sanitizer"},
    {"GccTsan", {"gcc", "-fsanitize=thread"}, "with ThreadSanitizer", "with ThreadSanitizer"},
    {"GccTsanStatic", {"gcc", "-fsanitize=thread", "-static-libtsan"}, "anitizer", "with a sanitizer"},
    {"GccLsan", {"gcc", "-fsanitize=leak"}, "with LeakSanitizer", "with LeakSanitizer"},
    {"ClangAsan", {"clang", "-fsanitize=address"}, "with AddressSanitizer",
     "with AddressSanitizer"},
    {"ClangTsan", {"clang", "-fsanitize=thread"}, "with ThreadSanitizer", "with ThreadSanitizer"},
    {"ClangMsan", {"clang", "-fsanitize=memory"}, "with MemorySanitizer", "with MemorySanitizer"},
    {"ClangLsan", {"clang", "-fsanitize=leak"}, "with LeakSanitizer", "with LeakSanitizer"},
    {"Musl", {"musl-gcc"}, "it uses musl libc", "does not use glibc"},
    {"ThirtyTwoBits", {"gcc", "-m32"}, "it is a 32-bit program", "", "wrong ELF class"},
    {"Static", {"gcc", "-static"}, "it is statically linked", ""},
    {"StaticPie", {"gcc", "-static-pie"}, "it is statically linked", ""},
};
INSTANTIATE_TEST_SUITE_P(Of, RefusalsTest, ::testing::ValuesIn(kBuilds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RefusalsUnderValgrindTest, RunRefusesTheLauncher) {
  TempDir traces;
  if (!HaveValgrind()) GTEST_SKIP() << "valgrind is not installed";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-o", traces / "x.mtr", "valgrind",
                                               "-q", "/bin/echo", "runs"}});
  EXPECT_EQ(run.Outcome(), "exit 2");
  EXPECT_THAT(run.err, HasSubstr("runs under Valgrind has Valgrind's allocator"));
  EXPECT_EQ(Lines(run.err), 1u);
  EXPECT_THAT(FilesIn(traces.path()), IsEmpty());
}

TEST(RefusalsUnderValgrindTest, TheLibraryStaysOff) {
  if (!HaveValgrind()) GTEST_SKIP() << "valgrind is not installed";
  TempDir traces;
  for (const char* tool : {"--tool=memcheck", "--tool=massif"}) {
    const Result run = RunCommand(Traced(
        {.arguments = {"valgrind", tool, "-q", "/bin/echo", "runs"}, .directory = traces.path()},
        traces.path()));
    EXPECT_EQ(run.Outcome(), "exit 0");
    EXPECT_EQ(run.out, "runs\n");
    EXPECT_EQ(run.err,
              "memtrace: this program runs under Valgrind, which replaces the allocator itself; it "
              "runs untraced (use one of the two at a time)\n");
  }
  for (const std::string& file : FilesIn(traces.path())) {
    EXPECT_THAT(file, ::testing::Not(StartsWith("echo"))) << "only of what starts Valgrind";
  }
}

// A tool that leaves the allocator alone is no reason: that is how the instructions of the
// library are counted.
TEST(RefusalsUnderValgrindTest, NoneOfItsToolsThatLeaveTheAllocatorAlone) {
  if (!HaveValgrind()) GTEST_SKIP() << "valgrind is not installed";
  TempDir traces;
  const Result run = RunCommand(Traced(
      {.arguments = {"valgrind", "--tool=none", "-q", "/bin/echo", "runs"}}, traces.path()));
  EXPECT_EQ(run.out, "runs\n");
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("untraced")));
  EXPECT_NE(TraceOf(traces.path(), "echo", run.pid), "");
}

// What the library has to say it says once in a tree of processes.
TEST(RefusalsInATreeTest, OnceInATree) {
  TempDir directory;
  WriteFile(directory / "program.c", kProgram);
  const std::string program = directory / "program";
  const Result built = RunCommand({.arguments = {"clang", "-fsanitize=thread",
                                                 directory / "program.c", "-o", program}});
  if (built.exit_status != 0) GTEST_SKIP() << "clang's ThreadSanitizer is not installed";
  TempDir traces;
  const Result run = RunCommand(Traced(
      {.arguments = {"sh", "-c", program + "; " + program + "; exit 0"}}, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.out, "runs\nruns\n");
  EXPECT_EQ(run.err, "") << "the shell is traced, and the first of the tree";
}

}  // namespace
}  // namespace memtrace::e2e
