// Reads and writes are whole where the kernel gives less than was asked for.

#include "base/whole_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::base {
namespace {

TEST(WholeIoTest, WhatAPipeTakesInPartsArrivesWhole) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string sent(size_t{1} << 20, 'x');  // more than a pipe holds
  std::string arrived;
  std::thread reader([&] {
    EXPECT_TRUE(ReadParts(ends[0], [&](std::string_view part) {
      arrived += part;
      return true;
    }));
  });
  EXPECT_TRUE(WriteAll(ends[1], sent));
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(arrived, sent);
}

TEST(WholeIoTest, AFullDeviceIsAnError) {
  const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  errno = 0;
  EXPECT_FALSE(WriteAll(fd, "some"));
  EXPECT_EQ(errno, ENOSPC);
  close(fd);
}

TEST(WholeIoTest, AFileThatEndsEarlierIsReadUpToItsEnd) {
  const TempDir directory;
  WriteFile(directory / "file", "0123456789");
  const int fd = open((directory / "file").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  char bytes[8];
  size_t got = 0;
  EXPECT_TRUE(ReadUpTo(fd, 6, bytes, sizeof(bytes), &got));
  EXPECT_EQ(std::string(bytes, got), "6789");
  EXPECT_FALSE(ReadAllAt(fd, 6, bytes, sizeof(bytes)));
  EXPECT_TRUE(ReadAllAt(fd, 2, bytes, sizeof(bytes)));
  EXPECT_EQ(std::string(bytes, sizeof(bytes)), "23456789");

  uint64_t offset = 10;
  EXPECT_TRUE(WriteAllAt(fd, "abc", &offset));
  EXPECT_EQ(offset, 13u);
  close(fd);
  EXPECT_EQ(ReadFile(directory / "file"), "0123456789abc");
}

}  // namespace
}  // namespace memtrace::base
