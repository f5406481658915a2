// What is made below $TMPDIR, and what is said where that cannot be.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "report/base/scratch_directory.h"
#include "report/base/unlinked_file.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

class TmpdirTest : public testing::Test {
 protected:
  TmpdirTest() {
    if (const char* const before = getenv("TMPDIR")) before_ = before;
  }
  ~TmpdirTest() override {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }

  TempDir directory_;

 private:
  std::string before_;
};

TEST_F(TmpdirTest, AFileIsMadeThereWithoutAName) {
  setenv("TMPDIR", directory_.path().c_str(), 1);
  const auto file = CreateUnlinkedFile("a test");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->place, directory_.path());
  struct stat info;
  ASSERT_EQ(fstat(file->fd.get(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(write(file->fd.get(), "x", 1), 1);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(TmpdirTest, ADirectoryIsMadeThereAndRemoved) {
  setenv("TMPDIR", directory_.path().c_str(), 1);
  {
    const ScratchDirectory scratch("test");
    EXPECT_TRUE(scratch.path().starts_with(directory_ / "test.")) << scratch.path();
    EXPECT_TRUE(std::filesystem::is_directory(scratch.path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// It is the directory that is wrong, and not a name that nobody has chosen.
TEST_F(TmpdirTest, WhoCannotMakeAnythingThereIsToldWhatToDo) {
  const std::string none = directory_ / "none";
  setenv("TMPDIR", none.c_str(), 1);
  EXPECT_EQ(CreateUnlinkedFile("a copy of the trace").status().message(),
            "cannot make a file in " + none + " for a copy of the trace: " + strerror(ENOENT) +
                "; set TMPDIR to a directory with room");
  const ScratchDirectory scratch("test");
  EXPECT_EQ(scratch.path(), "");
  EXPECT_EQ(scratch.error(), "cannot make a directory in " + none + ": " + strerror(ENOENT) +
                                 "; set TMPDIR to a directory with room");
}

}  // namespace
}  // namespace memtrace::report
