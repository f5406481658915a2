// Under the tools of Valgrind that leave the allocator alone a program is traced, and all else is
// as without the library: how it and its children end, what is on their stderr, and the profile.
// qemu-user makes the program's system calls likewise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// One child ends by exit(), one by _exit(). The thread has a stack that is new to the library.
constexpr char kProgram[] = R"(
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void* volatile kept;
static void* Thread(void* unused) { kept = malloc(1000); return unused; }
static int Await(void) { int status = 0; wait(&status); return WEXITSTATUS(status); }
int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, Thread, 0) != 0 || pthread_join(thread, 0) != 0) return 1;
  if (fork() == 0) { free(malloc(10)); exit(3); }
  const int first = Await();
  if (fork() == 0) { kept = malloc(10); _exit(4); }
  printf("%d %d\n", first, Await());
  return 5;
}
)";
constexpr char kOutput[] = "3 4\n";

// The path of the program; "": it cannot be built here.
std::string Build(const TempDir& directory) {
  WriteFile(directory / "program.c", kProgram);
  const std::string program = directory / "program";
  const Result built = RunCommand(
      {.arguments = {"gcc", "-g", "-pthread", directory / "program.c", "-o", program}});
  return built.exit_status == 0 ? program : "";
}

class ValgrindToolsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ValgrindToolsTest, TellsTheSameWithTheLibrary) {
  if (!HaveValgrind()) GTEST_SKIP() << "there is no valgrind";
  TempDir directory, plain_profiles, profiles, traces;
  const std::string program = Build(directory);
  if (program.empty()) GTEST_SKIP() << "there is no gcc";
  const std::string tool = GetParam();
  const auto command = [&](const TempDir& to) {
    return Command{.arguments = {"valgrind", "-q", "--tool=" + tool, program},
                   .directory = to.path()};
  };
  const Result plain = RunCommand(command(plain_profiles));
  ASSERT_EQ(plain.Outcome(), "exit 5") << plain.err;
  ASSERT_EQ(plain.out, kOutput);
  const Result run = RunCommand(Traced(command(profiles), traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 5");
  EXPECT_EQ(run.out, kOutput);
  EXPECT_EQ(run.err, plain.err);

  EXPECT_THAT(FilesIn(profiles.path()), SizeIs(FilesIn(plain_profiles.path()).size()));
  if (tool == "callgrind") {
    const std::string profile = profiles / ("callgrind.out." + std::to_string(run.pid));
    ASSERT_TRUE(Exists(profile));
    EXPECT_THAT(ReadFile(profile), HasSubstr("totals: ")) << "it is written to its end";
  }

  const Json report = Report(TraceOf(traces.path(), "program", run.pid));
  EXPECT_EQ(report.at("process").at("exit_status"), 5);
  EXPECT_EQ(AllocationsOf(report, 1000), 1u);
  EXPECT_TRUE(NamesFunction(report, "^Thread$")) << "the stack of a thread is read";
  ASSERT_TRUE(report.at("no_leak_scan").is_string());
  EXPECT_THAT(report.at("no_leak_scan").get<std::string>(), HasSubstr("runs under Valgrind"));
}

INSTANTIATE_TEST_SUITE_P(Of, ValgrindToolsTest, ::testing::Values("none", "callgrind"),
                         [](const auto& info) { return std::string(info.param); });

TEST(EmulatorTest, IsNamedWhereItLetsNothingBeScanned) {
  if (!Exists("/usr/bin/qemu-x86_64")) GTEST_SKIP() << "there is no qemu-user";
  TempDir directory, traces;
  const std::string program = Build(directory);
  if (program.empty()) GTEST_SKIP() << "there is no gcc";
  const Result run = RunCommand(
      {.arguments = {"/usr/bin/qemu-x86_64", "-E", "LD_PRELOAD=" + LibraryPath(), program},
       .environment = {{"MEMTRACE_OUT", traces / "%e.%p.mtr"}}});
  EXPECT_EQ(run.Outcome(), "exit 5") << run.err;
  EXPECT_EQ(run.out, kOutput);
  const Json report = Report(TraceOf(traces.path(), "program", run.pid));
  ASSERT_TRUE(report.at("no_leak_scan").is_string());
  EXPECT_THAT(report.at("no_leak_scan").get<std::string>(), HasSubstr("as under qemu-x86_64"));
}

}  // namespace
}  // namespace memtrace::e2e
