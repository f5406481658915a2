#include "report/base/path.h"

#include <gtest/gtest.h>

namespace memtrace::report {
namespace {

TEST(PathTest, TheFileNameIsTheLastComponent) {
  EXPECT_EQ(FileNameOf("/lib/libc.so.6"), "libc.so.6");
  EXPECT_EQ(FileNameOf("b"), "b");
  EXPECT_EQ(FileNameOf("a/"), "");
}

TEST(PathTest, TheDirectoryIsOneForOpen) {
  EXPECT_EQ(DirectoryOf("b"), ".");
  EXPECT_EQ(DirectoryOf("/b"), "/");
  EXPECT_EQ(DirectoryOf("a/b"), "a");
}

}  // namespace
}  // namespace memtrace::report
