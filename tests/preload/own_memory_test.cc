#include "preload/own_memory.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace memtrace
