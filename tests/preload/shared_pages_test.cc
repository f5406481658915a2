// Which pages of a shared mapping are in memory, and how many the kernel is asked for.

#include "preload/leak_scan/shared_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "preload/arch/arch.h"

namespace memtrace {
namespace {

constexpr uintptr_t kPage = arch::kPageBytes;

// A file in memory of which a page is there, and then one.
class Sparse {
 public:
  explicit Sparse(size_t pages) : bytes_(pages * kPage) {
    const int fd = memfd_create("sparse", 0);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes_)), 0);
    memory_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    mapping_.begin = begin();
    mapping_.end = begin() + bytes_;
    mapping_.shared = mapping_.file = true;
    mapping_.path = "/memfd:sparse (deleted)";
  }
  ~Sparse() { munmap(memory_, bytes_); }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;

  void Touch(size_t page) { memory_[page * kPage] = 1; }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }
  ScanMapping& mapping() { return mapping_; }
  bool MayOpen() const {
    char path[96];
    snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, begin(), begin() + bytes_);
    const int fd = open(path, O_RDONLY);
    if (fd >= 0) close(fd);
    return fd >= 0;
  }

 private:
  const size_t bytes_;
  char* memory_ = nullptr;
  ScanMapping mapping_;
};

TEST(SharedPagesTest, WhatHasNoDataIsNotAskedFor) {
  constexpr size_t kPages = size_t{64} << 20, kPart = size_t{4} << 20;  // 256 GiB, in parts
  Sparse sparse(kPages);
  if (!sparse.MayOpen()) GTEST_SKIP() << "what is mapped may not be opened here";
  const std::vector<size_t> touched = {0, kPages / 2 + 5, kPages - 1};
  for (const size_t page : touched) sparse.Touch(page);
  SharedPages shared;
  std::vector<uint8_t> resident(kPart);
  size_t found = 0;
  for (size_t part = 0; part < kPages; part += kPart) {
    ASSERT_TRUE(shared.Find(sparse.mapping(), sparse.begin() + part * kPage, kPart, resident.data()));
    for (const size_t page : touched) {
      if (page >= part && page < part + kPart) found += resident[page - part] & 1;
    }
  }
  EXPECT_EQ(found, touched.size());
  EXPECT_LT(shared.asked(), 10'000u);
}

TEST(SharedPagesTest, PagesAmongOthersAreToldApart) {
  constexpr size_t kPages = size_t{32} << 10;
  Sparse sparse(kPages);
  for (size_t page = 0; page < kPages; page += 100) sparse.Touch(page);
  SharedPages shared;
  std::vector<uint8_t> resident(kPages);
  ASSERT_TRUE(shared.Find(sparse.mapping(), sparse.begin(), kPages, resident.data()));
  for (size_t page = 0; page < kPages; page += 100) EXPECT_EQ(resident[page] & 1, 1) << page;
}

TEST(SharedPagesTest, NoMoreThanAreToBeAskedFor) {
  Sparse sparse(4096);
  sparse.mapping().path = "/a/file";  // nobody opens it
  SharedPages shared(1000);
  std::vector<uint8_t> resident(4096);
  EXPECT_TRUE(shared.Find(sparse.mapping(), sparse.begin(), 600, resident.data()));
  EXPECT_FALSE(shared.Find(sparse.mapping(), sparse.begin(), 600, resident.data()));
  EXPECT_TRUE(shared.Find(sparse.mapping(), sparse.begin(), 400, resident.data()));
  EXPECT_EQ(shared.asked(), 1000u);
}

// A copy of the process has none of them in its tables, and knows them all the same.
TEST(SharedPagesTest, HugePagesThatWereTouchedInACopyAsWell) {
  constexpr size_t kHuge = size_t{2} << 20;
  void* const memory = mmap(nullptr, kHuge, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "this machine has no huge pages";
  ScanMapping mapping;
  mapping.begin = reinterpret_cast<uintptr_t>(memory);
  mapping.end = mapping.begin + kHuge;
  mapping.shared = mapping.file = true;
  mapping.path = "/anon_hugepage (deleted)";
  constexpr size_t kPages = kHuge / kPage;
  std::vector<uint8_t> resident(kPages);
  const auto is_there = [&](bool in_copy, size_t page) {
    SharedPages shared(SharedPages::kMostAsked, in_copy);
    return shared.Find(mapping, mapping.begin, kPages, resident.data()) && (resident[page] & 1) != 0;
  };
  EXPECT_FALSE(is_there(false, 0));
  static_cast<char*>(memory)[100 * kPage] = 1;
  EXPECT_TRUE(is_there(false, 100));
  const pid_t child = fork();
  if (child == 0) _exit(is_there(true, 100) ? 0 : 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  munmap(memory, kHuge);
}

// It is given the advice that huge pages refuse.
TEST(SharedPagesTest, OtherMemoryKeepsWhatItHas) {
  constexpr size_t kPages = 64;
  Sparse sparse(kPages);
  sparse.Touch(0);
  sparse.Touch(1);
  SharedPages shared(SharedPages::kMostAsked, /*in_copy=*/true);
  std::vector<uint8_t> resident(kPages);
  ASSERT_TRUE(shared.Find(sparse.mapping(), sparse.begin(), kPages, resident.data()));
  EXPECT_EQ(shared.asked(), kPages);
  EXPECT_EQ(resident[1] & 1, 1);
  EXPECT_EQ(resident[2], 0);
  EXPECT_EQ(*reinterpret_cast<const char*>(sparse.begin() + kPage), 1);
}

}  // namespace
}  // namespace memtrace
