// The file of a report before the program runs: that of an earlier run goes, and nothing else.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "report/valgrind/report_file.h"
#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::report::valgrind {
namespace {

TEST(ValgrindReportFileTest, ThatOfAnEarlierRunIsRemoved) {
  TempDir directory;
  const std::string path = directory / "log";
  WriteFile(path, "an earlier run\n");
  EXPECT_TRUE(ReportFile(path, std::nullopt).Begin().ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(ReportFile(path, std::nullopt).Begin().ok()) << "there is none";
}

// Valgrind opens it for writing, where a directory that may be written is of no help.
TEST(ValgrindReportFileTest, AFileThatMayNotBeWrittenStays) {
  constexpr uid_t kNobody = 65534;
  TempDir directory;
  const std::string path = directory / "log";
  WriteFile(path, "mine\n");
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    // Root may write to everything.
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(77);
    const absl::Status status = ReportFile(path, std::nullopt).Begin();
    const std::string expected = "cannot write " + path +
                                 ": Permission denied; the file that is there stays: give it write "
                                 "permission, or take another name";
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    _exit(status.message() == expected ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "root cannot be left here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadFile(path), "mine\n");
}

}  // namespace
}  // namespace memtrace::report::valgrind
