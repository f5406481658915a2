// What is read out of texts of /proc, as the kernel writes them.

#include "preload/proc_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace memtrace {
namespace {

TEST(ProcTextTest, ALineOfMapsIsTaken) {
  MapLine map;
  ASSERT_TRUE(ParseMapLine("7f12a0000000-7f12a0021000 r-xp 00003000 fe:01 1134612            "
                           "        /a dir/x.so (deleted)",
                           &map));
  EXPECT_EQ(map.begin, 0x7f12a0000000u);
  EXPECT_EQ(map.end, 0x7f12a0021000u);
  EXPECT_EQ(map.permissions, "r-xp");
  EXPECT_EQ(map.offset, 0x3000u);
  EXPECT_EQ(map.inode, 1134612u);
  EXPECT_EQ(map.path, "/a dir/x.so (deleted)");
}

TEST(ProcTextTest, AMappingMayHaveNoPath) {
  MapLine map;
  map.path = "of the line before";
  ASSERT_TRUE(ParseMapLine("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 ", &map));
  EXPECT_EQ(map.begin, 0xffffffffff600000u);
  EXPECT_EQ(map.inode, 0u);
  EXPECT_EQ(map.path, "");
}

TEST(ProcTextTest, FiguresOfSmapsAreNoMappings) {
  MapLine map;
  for (const char* line : {"", "Rss:                   4 kB", "Anonymous:             4 kB",
                           "VmFlags: rd wr mr mw me ac ", "-1000 rw-p 0 00:00 0", "1000",
                           "1000-2000", "1000-2000 rw 0 00:00 0"}) {
    EXPECT_FALSE(ParseMapLine(line, &map)) << line;
  }
}

TEST(ProcTextTest, AllMappingsOfThisProcessAreTaken) {
  std::ifstream maps("/proc/self/maps");
  int mappings = 0, executable = 0;
  for (std::string line; std::getline(maps, line); ++mappings) {
    MapLine map;
    ASSERT_TRUE(ParseMapLine(line, &map)) << line;
    EXPECT_LT(map.begin, map.end) << line;
    executable += map.permissions[2] == 'x';
  }
  EXPECT_GT(mappings, 0);
  EXPECT_GT(executable, 0);
}

TEST(ProcTextTest, FieldsOfStatAreCountedBehindTheName) {
  const std::string stat = "17 (a) Z) 3 (b) S 4242 17 17 0 -1 4194304 101 0\n";
  EXPECT_EQ(StatNumber(stat, 4), 4242u);
  EXPECT_EQ(StatNumber(stat, 9), 4194304u);
  EXPECT_EQ(StatNumber(stat, 11), 0u);
  EXPECT_EQ(StatNumber(stat, 22), 0u) << "it has not as many";
  EXPECT_EQ(StatNumber("", 4), 0u);
}

TEST(ProcTextTest, FiguresOfStatusAreKiB) {
  const std::string status = "Name:\tVmLck\nVmPeak:\t    3140 kB\nVmLck:\t       0 kB\n";
  uint64_t kb = 7;
  EXPECT_FALSE(StatusKb(status, "\nVmHWM:", &kb));
  EXPECT_EQ(kb, 7u);
  EXPECT_TRUE(StatusKb(status, "VmPeak:", &kb));
  EXPECT_EQ(kb, 3140u);
  EXPECT_TRUE(StatusKb(status, "\nVmLck:", &kb));
  EXPECT_EQ(kb, 0u);
}

}  // namespace
}  // namespace memtrace
