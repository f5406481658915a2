// What is left of a file that was begun.

#include "report/base/output_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

class OutputFileTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_ / "out"; }
  long Files() const {
    return std::distance(std::filesystem::directory_iterator(directory_.path()), {});
  }

  TempDir directory_;
};

TEST_F(OutputFileTest, IsThereWholeOrNotAtAll) {
  {
    const auto file = OutputFile::Create(path());
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(Files(), 1);
    EXPECT_FALSE(std::filesystem::exists(path()));
  }
  EXPECT_EQ(Files(), 0);
  const auto file = OutputFile::Create(path());
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::exists(path()));
  EXPECT_EQ(Files(), 1);
}

TEST_F(OutputFileTest, WhatAKilledProcessOfThisNumberLeftIsNotInTheWay) {
  const auto left = OutputFile::Create(path());
  ASSERT_TRUE(left.ok());
  const auto file = OutputFile::Create(path());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Commit().ok());
}

TEST_F(OutputFileTest, ALinkStaysOne) {
  const std::string link = directory_ / "link";
  std::ofstream(path()) << "old";
  std::filesystem::create_symlink("out", link);
  const auto file = OutputFile::Create(link);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(write((*file)->fd(), "new", 3), 3);
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::string content;
  std::getline(std::ifstream(path()), content);
  EXPECT_EQ(content, "new");
  EXPECT_EQ(Files(), 2);
}

TEST_F(OutputFileTest, ALinkThatLeadsNowhereLeadsToTheFile) {
  const std::string first = directory_ / "first";
  std::filesystem::create_symlink("second", first);
  std::filesystem::create_symlink(path(), directory_ / "second");
  const auto file = OutputFile::Create(first);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(first));
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path())));
  std::filesystem::create_symlink("missing/out", directory_ / "lost");
  EXPECT_FALSE(OutputFile::Create(directory_ / "lost").ok());
}

TEST_F(OutputFileTest, ASignalThatEndsTheProcessLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    if (child == 0) {
      const auto file = OutputFile::Create(path());
      raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(Files(), 0) << signal;
  }
}

TEST_F(OutputFileTest, AnIgnoredSignalStaysIgnored) {
  const pid_t child = fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_IGN);
    const auto file = OutputFile::Create(path());
    raise(SIGINT);
    _exit((*file)->Commit().ok() ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

}  // namespace
}  // namespace memtrace::report
