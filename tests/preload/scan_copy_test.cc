#include "preload/leak_scan/scan_copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace memtrace {
namespace {

// For ThreadSanitizer: threads exec and exit while another one begins the first scan.
TEST(ScanCopyTest, ThePageIsMadeWhileOtherThreadsLookForIt) {
  ASSERT_EQ(g_scanning_copy.load(), 0);
  ForgetScanCopy();
  std::atomic<bool> made{false};
  std::thread other([&made] {
    while (!made.load(std::memory_order_relaxed)) {
      WaitForSharedFiles();
      PauseForScanCopy(1);
    }
  });
  EXPECT_TRUE(HasScanPage());
  made.store(true, std::memory_order_relaxed);
  other.join();
  EXPECT_NE(TheScanPage(), nullptr);
  EXPECT_EQ(TheScanPage()->shares_files.load(), 0u);
}

}  // namespace
}  // namespace memtrace
