// Which mappings are kept from fork children: by lines as the kernel writes them, and by asking
// it of a mapping of this process.

#include "preload/leak_scan/kept_from_forks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace memtrace {
namespace {

using Ranges = std::vector<std::pair<uintptr_t, uintptr_t>>;

Ranges Of(std::istream& smaps) {
  Ranges ranges;
  SmapsFlags flags;
  for (std::string line; std::getline(smaps, line);) {
    if (flags.Take(line) == SmapsFlags::kPlain) ranges.emplace_back(flags.begin(), flags.end());
  }
  return ranges;
}
Ranges Of(const std::string& text) {
  std::istringstream lines(text);
  return Of(lines);
}

bool IsKept(const void* at) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(at);
  for (const auto& [begin, end] : Of(smaps)) {
    if (begin <= address && address < end) return true;
  }
  return false;
}

// `locked_kb`: by mappings of this test.
bool MayLend(int locked_kb = 0) {
  utsname system;
  int major = 0, minor = 0;
  if (uname(&system) != 0 || sscanf(system.release, "%d.%d", &major, &minor) != 2) return false;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int kb = 0;
    if (sscanf(line.c_str(), "VmPin: %d", &kb) == 1 && kb != 0) return false;
    if (sscanf(line.c_str(), "VmLck: %d", &kb) == 1 && kb != locked_kb) return false;
  }
  return std::pair(major, minor) >= std::pair(5, 10);
}

TEST(SmapsFlagsTest, APrivateMappingWithTheFlag) {
  EXPECT_EQ(Of("7f0000001000-7f0000003000 rw-p 00000000 00:00 0 \n"
               "Size:                  8 kB\n"
               "VmFlags: rd wr mr mw me dc ac sd \n"
               "7f0000004000-7f0000005000 rw-p 00000000 00:00 0   [anon: dc]\n"
               "VmFlags: rd wr mr mw me ac \n"
               "7f0000006000-7f0000007000 rw-s 00000000 00:05 9   /dev/zero (deleted)\n"
               "VmFlags: rd wr sh mr mw me ms dc sd \n"
               "7f0000008000-7f0000009000 rw-p 00000000 00:05 9   /dev/binder\n"
               "VmFlags: rd wr mr mw me dc sd \n"
               "7f000000a000-7f000000b000 ---p 00000000 00:00 0 \n"
               "VmFlags: mr mw me dc sd \n"
               "7f0000200000-7f0000400000 rw-p 00000000 00:00 0 \n"
               "VmFlags: rd wr mr mw me dc ht sd \n"
               "7f000000c000-7f000000d000 rw-p 00000000 00:00 0 \n"
               "VmFlags: rd wr mr mw me pf io dc sd \n"
               "ffff600000-ffff601000 r--p 00000000 00:00 0\n"
               "VmFlags: rd dc\n"),
            (Ranges{{0x7f0000001000, 0x7f0000003000}, {0xffff600000, 0xffff601000}}));
}

TEST(SmapsFlagsTest, NoLinesOfAMapping) {
  EXPECT_EQ(Of(""), Ranges());
  EXPECT_EQ(Of("\n\nVmFlags: rd dc\n"), Ranges()) << "of no mapping";
}

class KeptFromForksTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 64 << 10;

  KeptFromForksTest()
      : pages_(static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~KeptFromForksTest() override { munmap(pages_, kBytes); }

  char* const pages_;
  const std::unique_ptr<ScanJob> job_ = std::make_unique<ScanJob>();
};

TEST_F(KeptFromForksTest, IsForkedWhileItLivesAndNotBehindIt) {
  ASSERT_EQ(madvise(pages_ + 4096, 4096, MADV_DONTFORK), 0);
  ASSERT_TRUE(IsKept(pages_ + 4096));
  {
    KeptFromForks kept;
    const bool all = kept.Lend(*job_);
    if (!MayLend()) GTEST_SKIP() << "not on this kernel, or memory is pinned";
    EXPECT_TRUE(all);
    EXPECT_EQ(kept.size(), 1u);
    EXPECT_FALSE(IsKept(pages_ + 4096));
    ASSERT_EQ(job_->own_count, 1u) << "the list is no root";
  }
  EXPECT_TRUE(IsKept(pages_ + 4096));
  EXPECT_FALSE(IsKept(pages_));
  EXPECT_FALSE(IsKept(pages_ + 8192));
}

TEST_F(KeptFromForksTest, TheTracersOwnStaysAsItIs) {
  ASSERT_EQ(madvise(pages_, 4096, MADV_DONTFORK), 0);
  ASSERT_EQ(madvise(pages_ + 8192, 4096, MADV_DONTFORK), 0);
  const auto begin = reinterpret_cast<uintptr_t>(pages_);
  job_->own[job_->own_count++] = {begin + 100, begin + 200};
  KeptFromForks kept;
  kept.Lend(*job_);
  EXPECT_TRUE(IsKept(pages_));
  if (!MayLend()) GTEST_SKIP() << "not on this kernel, or memory is pinned";
  EXPECT_FALSE(IsKept(pages_ + 8192));
  kept.GiveBack();
  EXPECT_TRUE(IsKept(pages_ + 8192));
}

TEST_F(KeptFromForksTest, ALockedMappingIsNotPinned) {
  ASSERT_EQ(madvise(pages_, 4096, MADV_DONTFORK), 0);
  // By the kernel: sanitizers lock nothing. It is no device that locks a mapping.
  if (syscall(SYS_mlock, pages_ + 8192, 4096) != 0) GTEST_SKIP() << "no memory may be locked";
  const bool may_lend = MayLend(4);
  {
    KeptFromForks kept;
    EXPECT_EQ(kept.Lend(*job_), may_lend);
    EXPECT_EQ(kept.size(), may_lend ? 1u : 0u);
  }
  EXPECT_TRUE(IsKept(pages_));
}

TEST_F(KeptFromForksTest, PrivateMappingsOfFilesAreNotLent) {
  if (!MayLend()) GTEST_SKIP() << "not on this kernel, or memory is pinned";
  const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_EQ(madvise(mapped, 4096, MADV_DONTFORK), 0);
  ASSERT_EQ(madvise(pages_, 4096, MADV_DONTFORK), 0);
  KeptFromForks kept;
  EXPECT_FALSE(kept.Lend(*job_)) << "which a note tells";
  EXPECT_EQ(kept.size(), 1u);
  munmap(mapped, 4096);
}

}  // namespace
}  // namespace memtrace
