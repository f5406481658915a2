// Files of a cache: whose they are, and which of them go.

#include "base/private_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::base {
namespace {

namespace fs = std::filesystem;

constexpr PrivateKind kKind = {".kind", "MTTEST01"};

class PrivateFileTest : public ::testing::Test {
 protected:
  // Whether it is read, into `content_`.
  bool Read(const std::string& name, uint64_t most_bytes = 100) {
    return ReadPrivateFile(directory_ / name, most_bytes, 0, &content_);
  }
  // A file of the kind, that was used `seconds` after 1970.
  void Write(const std::string& name, const std::string& content, time_t seconds) {
    ASSERT_TRUE(WritePrivateFile(directory_ / name, content));
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (directory_ / name).c_str(), times, 0), 0);
  }
  bool Exists(const std::string& name) const { return fs::exists(directory_ / name); }

  const TempDir directory_;
  std::string content_;
};

TEST_F(PrivateFileTest, IsOfThisUserAloneInDirectoriesOfThisUserAlone) {
  ASSERT_TRUE(MakePrivateDirectory(directory_ / "a/b"));
  ASSERT_TRUE(MakePrivateDirectory(directory_ / "a/b"));
  ASSERT_TRUE(WritePrivateFile(directory_ / "a/b/file", "content"));
  EXPECT_EQ(fs::status(directory_ / "a").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(directory_ / "a/b/file").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(Read("a/b/file"));
  EXPECT_EQ(content_, "content");
}

TEST_F(PrivateFileTest, IsNotReadBehindALinkNorWhereItIsTooLargeOrNoFile) {
  ASSERT_TRUE(WritePrivateFile(directory_ / "file", "content"));
  fs::create_symlink("file", directory_ / "link");
  ASSERT_EQ(mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(Read("link"));
  EXPECT_FALSE(Read("fifo"));
  EXPECT_FALSE(Read("none"));
  EXPECT_FALSE(Read("file", 6));
  EXPECT_TRUE(Read("file", 7));
}

TEST_F(PrivateFileTest, WhereNothingCanBeWrittenNothingIsLeft) {
  ASSERT_TRUE(MakePrivateDirectory(directory_ / "taken/by"));
  EXPECT_FALSE(WritePrivateFile(directory_ / "taken", "content"));
  EXPECT_FALSE(WritePrivateFile(directory_ / "none/file", "content"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(PrivateFileTest, TheLeastRecentlyUsedOfAKindGoAndNothingElse) {
  const std::string content = "MTTEST00" + std::string(92, '.');  // of an earlier version
  Write("oldest.kind", content, 1000);
  Write("kept.kind", content, 1001);
  Write("middle.kind", content, 1002);
  Write("newest.kind", content, 1003);
  Write("other.kind", "what is dear to somebody" + content, 1);
  Write("name", content, 1);
  TrimPrivateDirectory(directory_.path(), kKind, 400, directory_ / "kept.kind");
  EXPECT_TRUE(Exists("oldest.kind"));  // it is not more
  TrimPrivateDirectory(directory_.path(), kKind, 399, directory_ / "kept.kind");
  EXPECT_FALSE(Exists("oldest.kind"));
  EXPECT_FALSE(Exists("middle.kind"));  // to three quarters of it
  for (const char* name : {"kept.kind", "newest.kind", "other.kind", "name"}) {
    EXPECT_TRUE(Exists(name)) << name;
  }
}

}  // namespace
}  // namespace memtrace::base
