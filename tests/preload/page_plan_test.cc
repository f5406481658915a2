// Which pages are to be read: the same by either way in which the kernel tells.

#include "preload/leak_scan/page_plan.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "preload/arch/arch.h"

namespace memtrace {
namespace {

constexpr uintptr_t kPageSize = arch::kPageBytes;
constexpr size_t kPages = 64;
constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL

std::vector<PagePlan::State> Plan(const ScanMapping& mapping, bool may_scan) {
  ScanArena arena;
  PagePlan plan(arena, /*in_copy=*/true);
  EXPECT_TRUE(plan.Prepare());
  if (!may_scan) plan.ForbidScanForTesting();
  EXPECT_EQ(plan.Make(mapping, mapping.begin, mapping.end), PagePlan::kMade);
  EXPECT_TRUE(plan.can_load());
  std::vector<PagePlan::State> states;
  for (size_t i = 0; i < (mapping.end - mapping.begin) / kPageSize; ++i) states.push_back(plan[i]);
  return states;
}

char* Map(ScanMapping* mapping, int flags, int fd = -1) {
  auto* const memory = static_cast<char*>(
      mmap(nullptr, kPages * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0));
  madvise(memory, kPages * kPageSize, MADV_NOHUGEPAGE);
  mapping->begin = reinterpret_cast<uintptr_t>(memory);
  mapping->end = mapping->begin + kPages * kPageSize;
  mapping->protection = PROT_READ | PROT_WRITE;
  return memory;
}

TEST(PagePlanTest, PagesThatWereWritten) {
  ScanMapping mapping;
  mapping.kind = format::ScanRegionKind::kAnonymous;
  char* const memory = Map(&mapping, MAP_ANONYMOUS);
  for (const size_t page : {3, 4, 63}) memory[page * kPageSize] = 1;
  std::vector<PagePlan::State> expected(kPages, PagePlan::kAbsent);
  expected[3] = expected[4] = expected[63] = PagePlan::kRead;
  const bool guard = madvise(memory + 3 * kPageSize, kPageSize, kGuardInstall) == 0;
  for (const bool may_scan : {true, false}) {
    std::vector<PagePlan::State> plan = Plan(mapping, may_scan);
    if (guard) {
      EXPECT_TRUE(plan[3] == PagePlan::kGuard || plan[3] == PagePlan::kUnreadable) << plan[3];
      plan[3] = PagePlan::kRead;
    }
    EXPECT_EQ(plan, expected) << may_scan;
  }
  munmap(memory, kPages * kPageSize);
}

// Behind Make() of a part where all was there, too.
TEST(PagePlanTest, WhatIsNotThereIsPassedOver) {
  constexpr size_t kMany = 512 << 10;  // 2 GiB
  const std::vector<size_t> there = {0, 511, 512, 5000, 200'000, 200'001, kMany - 1};
  auto* const memory = static_cast<char*>(mmap(nullptr, kMany * kPageSize, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, kMany * kPageSize, MADV_NOHUGEPAGE);
  for (const size_t page : there) memory[page * kPageSize] = 1;
  ScanMapping mapping;
  mapping.kind = format::ScanRegionKind::kAnonymous;
  mapping.begin = reinterpret_cast<uintptr_t>(memory);
  mapping.end = mapping.begin + kMany * kPageSize;
  mapping.protection = PROT_READ | PROT_WRITE;
  ScanMapping full;
  full.kind = format::ScanRegionKind::kAnonymous;
  char* const all = Map(&full, MAP_ANONYMOUS | MAP_POPULATE);
  ScanArena arena;
  PagePlan plan(arena, /*in_copy=*/true);
  ASSERT_TRUE(plan.Prepare());
  for (const bool may_scan : {true, false}) {
    if (!may_scan) plan.ForbidScanForTesting();
    ASSERT_EQ(plan.Make(full, full.begin, full.end), PagePlan::kMade);
    EXPECT_EQ(plan.SkipAbsent(0, kPages), 0u);
    EXPECT_EQ(plan[kPages - 1], PagePlan::kRead);
    ASSERT_EQ(plan.Make(mapping, mapping.begin, mapping.end), PagePlan::kMade);
    std::vector<size_t> found;
    size_t steps = 0;
    for (size_t page = 0; (page = plan.SkipAbsent(page, kMany)) < kMany; ++page, ++steps) {
      if (plan[page] == PagePlan::kRead) found.push_back(page);
    }
    EXPECT_EQ(found, there) << may_scan;
    EXPECT_EQ(plan[100'000], PagePlan::kAbsent);
    EXPECT_LE(steps, plan.is_quick() ? there.size() * 512 : kMany);
    EXPECT_EQ(plan.SkipAbsent(kMany, kMany), kMany);
  }
  munmap(memory, kMany * kPageSize);
  munmap(all, kPages * kPageSize);
}

TEST(PagePlanTest, OfAPrivateFileThoseThatAreItsOwn) {
  ScanMapping mapping;
  mapping.kind = format::ScanRegionKind::kFile;
  mapping.file = true;
  const int fd = memfd_create("file", 0);
  ASSERT_EQ(ftruncate(fd, kPages * kPageSize), 0);
  char* const memory = Map(&mapping, 0, fd);
  volatile char read = memory[7 * kPageSize];
  (void)read;
  memory[9 * kPageSize] = 1;
  std::vector<PagePlan::State> expected(kPages, PagePlan::kAbsent);
  expected[9] = PagePlan::kRead;
  for (const bool may_scan : {true, false}) EXPECT_EQ(Plan(mapping, may_scan), expected) << may_scan;
  munmap(memory, kPages * kPageSize);
  close(fd);
}

}  // namespace
}  // namespace memtrace
