#include "preload/own_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"

namespace memtrace {
namespace {

uint64_t FaultsOfOwnPage() {
  const uint64_t before = own_minor_faults();
  {
    const OwnFaultsScope scope;
    auto* const page = static_cast<volatile char*>(OwnMap(arch::kPageBytes, /*touch=*/false));
    EXPECT_NE(page, nullptr);
    if (page == nullptr) return 0;
    page[0] = 1;
    OwnUnmap(const_cast<char*>(page), arch::kPageBytes);
  }
  return own_minor_faults() - before;
}

TEST(OwnFaultsScopeTest, OneThatMayNotAskIsOverWhenItEnds) {
  EXPECT_GE(FaultsOfOwnPage(), 1u);
  g_memory_calls_only.store(true);
  {
    const OwnFaultsScope scope;
  }
  g_memory_calls_only.store(false);
  EXPECT_GE(FaultsOfOwnPage(), 1u) << "the next one counts again";
}

TEST(OwnFaultsScopeTest, TheOutermostCounts) {
  const uint64_t before = own_minor_faults();
  uint64_t inner = 0;
  {
    const OwnFaultsScope scope;
    inner = FaultsOfOwnPage();
  }
  EXPECT_EQ(inner, 0u);
  EXPECT_GE(own_minor_faults() - before, 1u);
}

// `left_bytes` of address space for it; 0: as much as it wants.
bool IsAligned(size_t bytes, size_t alignment, size_t left_bytes) {
  const pid_t child = fork();
  if (child == 0) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = pages * arch::kPageBytes + left_bytes;
    const rlimit limit = {room, room};
    if (left_bytes != 0 && setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    const uint64_t before = own_bytes();
    auto* const memory = static_cast<volatile char*>(OwnMapAligned(bytes, alignment));
    if (memory == nullptr || reinterpret_cast<uintptr_t>(memory) % alignment != 0) _exit(1);
    memory[0] = 1;
    memory[bytes - 1] = 1;
    OwnUnmap(const_cast<char*>(memory), bytes);
    _exit(own_bytes() == before ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(OwnMapAlignedTest, IsAlignedAndHasNoMore) {
  constexpr size_t kBytes = 512 << 10, kAlignment = 2 << 20;
  EXPECT_TRUE(IsAligned(kBytes, kAlignment, 0));
#if !defined(__SANITIZE_ADDRESS__)  // whose shadow is beyond any limit
  EXPECT_TRUE(IsAligned(kBytes, kAlignment, kBytes + (256 << 10))) << "where there is no more room";
#endif
}

}  // namespace
}  // namespace memtrace
