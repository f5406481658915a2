// Traces that are read or copied while threads write them, each block some time after its place was taken.

#include "report/run/running_copy.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "report/base/unique_fd.h"
#include "report/trace/trace_reader.h"
#include "tests/report/run/run_raw_trace.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

using ::testing::IsEmpty;

absl::Status Copy(const std::string& from, const std::string& to) {
  const UniqueFd in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd out(open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return CopyRunningFile(in.get(), from, out.get(), to);
}

class RunningCopyTest : public testing::Test {
 protected:
  static constexpr uint32_t kBlocks = 800;  // of each thread

  RunningCopyTest() : path_(directory_ / "raw.mtr"), trace_(path_, 1) {
    trace_.AppendEvents(50, 1, RawTrace::Mallocs(1, 0x5000));
    for (uint32_t thread = 1; thread <= 6; ++thread) threads_.emplace_back([this, thread] { Write(thread); });
  }
  ~RunningCopyTest() override { Stop(); }

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  void Write(uint32_t thread) {
    for (uint32_t sequence = 1; sequence <= kBlocks && !stop_; ++sequence) {
      const std::vector<uint64_t> words = RawTrace::Mallocs(200, 0x10000 * (sequence + 1));
      uint64_t offset;
      {
        const std::lock_guard lock(mutex_);
        offset = trace_.Reserve(words.size() * sizeof(words[0]));
      }
      const timespec pause = {0, static_cast<long>(offset / 64 * 7919 % 600) * 1000};
      nanosleep(&pause, nullptr);
      trace_.PutEventsAt(offset, thread, sequence, words);
    }
  }

  void ExpectWhole(const std::string& path) {
    const auto reader = TraceReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->statistics().lost_blocks, 0u);
    std::vector<uint64_t> words;
    for (const ThreadStream& stream : (*reader)->streams()) {
      for (const BlockRef& block : stream.blocks) EXPECT_TRUE((*reader)->ReadEvents(stream, block, &words));
    }
    EXPECT_THAT((*reader)->damage(), IsEmpty());
  }

  TempDir directory_;
  const std::string path_;
  std::mutex mutex_;
  RawTrace trace_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(RunningCopyTest, NothingIsMissingBetweenWhatWasCopied) {
  for (int i = 0; i < 20; ++i) {
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
    const std::string copy = directory_ / ("copy" + std::to_string(i));
    const absl::Status status = Copy(path_, copy);
    ASSERT_TRUE(status.ok()) << status;
    ExpectWhole(copy);
    std::filesystem::remove(copy);
  }
}

TEST_F(RunningCopyTest, NorOfWhatIsReadInPlace) {
  for (int i = 0; i < 100; ++i) {
    const timespec pause = {0, 2'000'000};
    nanosleep(&pause, nullptr);
    ExpectWhole(path_);
  }
}

// What is lost for good is waited for no longer than for what comes.
TEST_F(RunningCopyTest, AHoleThatStaysIsTold) {
  Stop();
  const uint64_t hole = trace_.Reserve(64000);
  EXPECT_GT(hole, 0u);
  trace_.PutEventsAt(trace_.Reserve(16), 50, 3, RawTrace::Mallocs(1, 0x5000));
  const std::string copy = directory_ / "copy";
  ASSERT_TRUE(Copy(path_, copy).ok());
  const auto reader = TraceReader::Open(copy);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->statistics().lost_blocks, 1u);
  EXPECT_EQ((*reader)->statistics().gaps, 1u);
  EXPECT_FALSE(CopyRunningFile(-1, "none", -1, "other").ok());
}

}  // namespace
}  // namespace memtrace::report
