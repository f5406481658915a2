// What a thread's calls come to when the recording has ended, in a handler that interrupts a sampled
// one, and within another allocator than glibc's. This program records itself: what these tests
// change of that they put back, and they leave no event.

#include "preload/recorder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "preload/lifecycle.h"
#include "preload/process.h"
#include "preload/recording_switch.h"
#include "preload/sampler.h"
#include "preload/thread_state.h"

namespace memtrace {
namespace {

// The recording has ended at MEMTRACE_MAX_BYTES, while it lives.
class Ended {
 public:
  Ended() {
    g_switch.ended.store(1);
    g_process.ended_for_itself.store(true);
    g_process.mode.store(Mode::kOff);
    recording_ = g_switch.recording.exchange(0);
  }
  ~Ended() {
    g_switch.recording.store(recording_);
    g_process.mode.store(Mode::kRecording);
    g_process.ended_for_itself.store(false);
    g_switch.ended.store(0);
  }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;

 private:
  uint32_t recording_;
};

TEST(RecorderTest, AThreadTakesTheShortWayOnceTheRecordingHasEnded) {
  {
    const Section section;
    ASSERT_TRUE(section);
  }
  ASSERT_EQ(t_slot.mode, ThreadMode::kRecording);
  char block[64];
  {
    const Ended ended;
    RecordFree(block);  // the first event that finds it so
    EXPECT_EQ(t_slot.mode, ThreadMode::kOff);
    EXPECT_FALSE(PrepareAlloc(100, {}));
    EXPECT_FALSE(PrepareFree(block, {}));
    EXPECT_EQ(t_slot.mode, ThreadMode::kOff);
    EXPECT_TRUE(IsOffForGood());
    // In a fork child the kernel has wiped the switch.
    g_switch.ended.store(0);
    EXPECT_FALSE(IsOffForGood()) << "a trace of its own may begin";
  }
  EXPECT_TRUE(PrepareAlloc(100, {}));
  EXPECT_EQ(t_slot.mode, ThreadMode::kRecording);
}

// A handler interrupted a call that was to be sampled before that drew anew, or has jumped out of it.
// What it allocates is sampled as anything else.
TEST(RecorderTest, AHandlerDrawsForACallThatHasNotYet) {
  const ThreadSlot before = t_slot;
  const uint64_t mean = std::exchange(g_process.config.sample_bytes, 1000);
  t_slot.mode = ThreadMode::kSampling;
  constexpr int kTimes = 20'000;
  int sampled = 0;
  for (int i = 0; i < kTimes; ++i) {
    t_slot.until_sample = 30;
    ASSERT_TRUE(TakeBytes(t_slot.until_sample, 70)) << "the interrupted call";
    ASSERT_TRUE(TakeBytes(t_slot.until_sample, 100));
    sampled += PrepareAlloc(100, {});
    EXPECT_GT(static_cast<int64_t>(t_slot.until_sample), 0);
  }
  EXPECT_NEAR(sampled, kTimes * (1 - std::exp(-0.1)), 6 * std::sqrt(kTimes * 0.1));
  g_process.config.sample_bytes = mean;
  t_slot = before;
}

// As within a call of an allocator that is not glibc's, while it lives.
class InAllocator {
 public:
  explicit InAllocator(uintptr_t frame) {
    t_slot.bracket_frame = frame;
    t_slot.mode = ThreadMode::kInAllocator;
  }
  ~InAllocator() {
    t_slot.mode = ThreadMode::kRecording;
    t_slot.bracket_frame = 0;
  }
  InAllocator(const InAllocator&) = delete;
  InAllocator& operator=(const InAllocator&) = delete;
};

TEST(RecorderTest, AThreadThatIsInAnAllocatorRecordsWhatIsNotTheAllocators) {
  char block[64], stack[64];
  const auto frame = reinterpret_cast<uintptr_t>(stack + 32);
  const CallSite deeper = {0, frame - 16, 0};
  const InAllocator in(frame);
  EXPECT_TRUE(PrepareAlloc(100, deeper));
  EXPECT_TRUE(PrepareFree(block, deeper));
  {
    const Section section;  // of a mapping that the allocator makes
    EXPECT_TRUE(section);
    EXPECT_EQ(t_slot.mode, ThreadMode::kInside);
  }
  EXPECT_EQ(t_slot.mode, ThreadMode::kInAllocator);
}

TEST(RecorderTest, ACallFromAboveTakesTheMarkOffThatAJumpHasLeft) {
  char block[64], stack[64];
  const auto frame = reinterpret_cast<uintptr_t>(stack + 32);
  const CallSite above = {0, frame + 16, 0};
  {
    const InAllocator in(frame);
    EXPECT_TRUE(PrepareAlloc(100, above));
    EXPECT_EQ(t_slot.mode, ThreadMode::kRecording);
  }
  const InAllocator in(frame);
  EXPECT_TRUE(PrepareFree(block, above));
  EXPECT_NE(t_slot.mode, ThreadMode::kInAllocator);
}

}  // namespace
}  // namespace memtrace
