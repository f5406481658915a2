// What ScanMappings takes the lines of /proc/self/maps for.

#include "preload/leak_scan/scan_mappings.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>

namespace memtrace {
namespace {

using format::ScanRegionKind;

std::string Line(uintptr_t begin, uintptr_t end, const char* rest) {
  char line[256];
  snprintf(line, sizeof(line), "%" PRIxPTR "-%" PRIxPTR " %s\n", begin, end, rest);
  return line;
}

// Of the program that this test is: its .bss and where it ends.
struct OwnModule {
  uintptr_t in_bss, end;
};
int g_in_bss;
OwnModule FindOwnModule() {
  constexpr uintptr_t kPage = arch::kPageBytes;
  dl_find_object object;
  const auto at = reinterpret_cast<uintptr_t>(&g_in_bss);
  EXPECT_EQ(_dl_find_object(&g_in_bss, &object), 0);
  const auto end = reinterpret_cast<uintptr_t>(object.dlfo_map_end);
  return {at & ~(kPage - 1), (end + kPage - 1) & ~(kPage - 1)};
}

class ScanMappingsTest : public ::testing::Test {
 protected:
  void Read(const std::string& text) {
    text_ = text;
    ASSERT_TRUE(mappings_.ReadForTesting(text_));
  }

  std::string text_;
  ScanArena arena_;
  ScanMappings mappings_{arena_};
};

TEST_F(ScanMappingsTest, AHeapBehindTheBssIsPartedFromIt) {
  const OwnModule module = FindOwnModule();
  Read(Line(module.in_bss - 0x1000, module.in_bss, "rw-p 00003000 fe:00 77   /bin/program") +
       Line(module.in_bss, module.end + 0x21000, "rw-p 00000000 00:00 0   [heap]"));
  ASSERT_EQ(mappings_.size(), 3u);
  EXPECT_EQ(mappings_[1].kind, ScanRegionKind::kModuleData);
  EXPECT_EQ(mappings_[1].path, "/bin/program");
  EXPECT_EQ(mappings_[1].end, module.end);
  EXPECT_EQ(mappings_[2].kind, ScanRegionKind::kHeap);
  EXPECT_EQ(mappings_[2].path, "[heap]");
  EXPECT_EQ(mappings_[2].begin, module.end);
  EXPECT_EQ(mappings_[2].end, module.end + 0x21000);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(mappings_[i].part, ScanMapping::Part::kRead) << i;
}

TEST_F(ScanMappingsTest, AHeapOfItsOwnIsWhole) {
  Read(Line(0x10000, 0x31000, "rw-p 00000000 00:00 0   [heap]"));
  ASSERT_EQ(mappings_.size(), 1u);
  EXPECT_EQ(mappings_[0].kind, ScanRegionKind::kHeap);
}

// GLIBC_TUNABLES=glibc.malloc.hugetlb=2: blocks are there.
TEST_F(ScanMappingsTest, HugePagesAreAnonymous) {
  Read(Line(0x7f0000000000, 0x7f0000200000, "rw-p 00000000 00:10 4711   /anon_hugepage (deleted)") +
       Line(0x7f0000400000, 0x7f0000600000, "rw-s 00000000 00:10 4712   /anon_hugepage (deleted)") +
       Line(0x7f0000800000, 0x7f0000a00000, "rw-p 00000000 fe:00 4713   /tmp/file"));
  ASSERT_EQ(mappings_.size(), 3u);
  EXPECT_TRUE(mappings_[0].anonymous());
  EXPECT_EQ(mappings_[0].kind, ScanRegionKind::kAnonymous);
  EXPECT_EQ(mappings_[0].part, ScanMapping::Part::kRead);
  EXPECT_EQ(mappings_[1].kind, ScanRegionKind::kShared);
  EXPECT_EQ(mappings_[2].kind, ScanRegionKind::kFile);
}

TEST_F(ScanMappingsTest, TellsWhyTheFileCannotBeRead) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool read = mappings_.Read();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(read);
  EXPECT_EQ(mappings_.error(), -EMFILE);
}

TEST_F(ScanMappingsTest, OfThisProcessTheyAreReadWithoutAnError) {
  EXPECT_TRUE(mappings_.Read());
  EXPECT_EQ(mappings_.error(), 0);
  EXPECT_NE(mappings_.Find(reinterpret_cast<uintptr_t>(&g_in_bss)), nullptr);
}

}  // namespace
}  // namespace memtrace
