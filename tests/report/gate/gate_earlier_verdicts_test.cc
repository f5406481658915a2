// Verdicts of earlier runs: which files of a command line are theirs, and which of them may go.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "report/gate/earlier_verdicts.h"
#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::report::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EarlierVerdictsTest, AFormatIsNoPartOfThePath) {
  EXPECT_EQ(OutputPath("junit=a.xml"), "a.xml");
  EXPECT_EQ(OutputPath("juint=a.xml"), "a.xml") << "which is told as a mistake";
  EXPECT_EQ(OutputPath("json=-"), "-");
  EXPECT_EQ(OutputPath("json="), "");
  EXPECT_EQ(OutputPath("a.xml"), "a.xml");
  EXPECT_EQ(OutputPath("./a=b"), "./a=b");
}

TEST(EarlierVerdictsTest, OutputsAreFoundAmongTheWords) {
  EXPECT_THAT(OutputsAmong({"t.mtr", "--bogus", "-o", "junit=a", "-ob", "--output", "c", "--output=d",
                            "-qo", "e", "-o", "-", "-qof"}),
              ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_THAT(OutputsAmong({"--bogus", "-o"}), IsEmpty());
  EXPECT_THAT(OutputsAmong({"--run", "--bogus", "-o", "a", "--", "app", "-o", "of_the_app"}),
              ElementsAre("a"));
  // Where the program's words begin is not known: a plain name may be its own.
  EXPECT_THAT(OutputsAmong({"--run", "-o", "junit=a", "app", "--in", "x", "-o", "of_the_app"}),
              ElementsAre("a"));
}

TEST(EarlierVerdictsTest, WhatIsReadIsNoOutput) {
  TempDir directory;
  const std::string file = directory / "known.supp", link = directory / "link";
  WriteFile(file, "{\n");
  ASSERT_EQ(symlink("known.supp", link.c_str()), 0);
  EXPECT_THAT(OutputsAmong({"--bogus", "--suppressions", file, "-o", link}), IsEmpty());
  EXPECT_THAT(OutputsAmong({"--bogus", "--suppressions=" + file, "-o", "json=" + file}), IsEmpty());
  EXPECT_THAT(OutputsAmong({"--bogus", "-o", file}), ElementsAre(file));
}

TEST(EarlierVerdictsTest, OnlyWhatServersReadIsRemoved) {
  TempDir directory;
  std::vector<std::string> paths;
  for (const char* text : {"<a/>", "{}", "[]", "text", ""}) {
    paths.push_back(directory / ("f" + std::to_string(paths.size())));
    WriteFile(paths.back(), text);
  }
  paths.insert(paths.end(), {directory / "absent", directory.path(), "", "/dev/null"});
  EXPECT_THAT(RemoveVerdicts(paths), ElementsAre(paths[0], paths[1], paths[2]));
  EXPECT_FALSE(std::filesystem::exists(paths[0]));
  EXPECT_TRUE(std::filesystem::exists(paths[3]));
  EXPECT_TRUE(std::filesystem::exists(paths[4]));
}

// What is written there is written through the link.
TEST(EarlierVerdictsTest, BehindALinkTheFileIsRemoved) {
  TempDir directory;
  const std::string file = directory / "real.xml", link = directory / "link.xml";
  WriteFile(file, "<a/>");
  ASSERT_EQ(symlink("real.xml", link.c_str()), 0);
  EXPECT_THAT(RemoveVerdicts({link}), ElementsAre(link));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(RemoveVerdicts({link}), IsEmpty());
}

TEST(EarlierVerdictsTest, WhatSomebodyHasOpenedForUsStays) {
  TempDir directory;
  const std::string file = directory / "out.json", other = directory / "other.json";
  WriteFile(file, "{}\n");
  WriteFile(other, "{}\n");
  const int saved = dup(STDOUT_FILENO);
  const int out = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const int fd = open(other.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const std::string by_fd = "/dev/fd/" + std::to_string(fd);
  fflush(stdout);
  ASSERT_EQ(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
  const std::vector<std::string> removed = RemoveVerdicts({"/dev/stdout", file, by_fd});
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(out);
  EXPECT_THAT(removed, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(other));
  // By its name it is an output as others are: `flock other.json memtrace check -o other.json ...`.
  EXPECT_THAT(RemoveVerdicts({other}), ElementsAre(other));
  close(fd);
}

}  // namespace
}  // namespace memtrace::report::gate
