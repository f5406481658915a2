#include "preload/unwind/rule_table.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include <thread>
#include <vector>

namespace memtrace::unwind {
namespace {

FrameRule RuleWith(int32_t offset) {
  FrameRule rule;
  rule.flags = kValid;
  rule.cfa_offset = offset;
  return rule;
}

class RuleTableTest : public testing::Test {
 protected:
  void SetUp() override { RuleTable::ClearForTesting(); }
  void TearDown() override {
    RuleTable::ClearForTesting();
    SetInstanceOf(nullptr);
  }
  static int OffsetOf(uintptr_t pc, bool exact = false) {
    uint64_t key = 0;
    const uint64_t packed = RuleTable::Instance().Find(RuleTable::Lookup(pc, exact), &key);
    return packed == 0 ? -1 : FrameRule::Unpacked(packed).cfa_offset;
  }
};

TEST_F(RuleTableTest, KeepsReturnAddressesAndExactPcsApart) {
  EXPECT_EQ(OffsetOf(0x401000), -1);
  RuleTable::Insert(RuleTable::Lookup(0x401000, false), 0, RuleWith(8));
  EXPECT_EQ(OffsetOf(0x401000), 8);
  EXPECT_EQ(OffsetOf(0x401000, true), -1);
  RuleTable::Insert(RuleTable::Lookup(0x401000, true), 0, RuleWith(16));
  EXPECT_EQ(OffsetOf(0x401000), 8);
  EXPECT_EQ(OffsetOf(0x401000, true), 16);
  EXPECT_EQ(RuleTable::Insert(RuleTable::Lookup(0x401000, true), 0, RuleWith(24)),
            RuleTable::Inserted::kAlready);
  EXPECT_EQ(OffsetOf(0x401000, true), 16) << "what is in the table never changes";
}

TEST_F(RuleTableTest, SaysWhenItIsFull) {
  // Pcs with the same home: the probes end after kMaxProbes.
  std::vector<uintptr_t> pcs;
  const size_t home = RuleTable::HomeForTesting(RuleTable::Lookup(0x401000, false));
  for (uintptr_t pc = 0x401000; pcs.size() < RuleTable::kMaxProbes + 1; pc += 0x1000) {
    if (RuleTable::HomeForTesting(RuleTable::Lookup(pc, false)) == home) pcs.push_back(pc);
  }
  for (size_t i = 0; i < RuleTable::kMaxProbes; ++i) {
    ASSERT_EQ(RuleTable::Insert(pcs[i], 0, RuleWith(static_cast<int>(i))),
              RuleTable::Inserted::kYes);
  }
  EXPECT_EQ(RuleTable::Insert(pcs.back(), 0, RuleWith(1)), RuleTable::Inserted::kFull);
  EXPECT_EQ(OffsetOf(pcs.back()), -1);
  for (size_t i = 0; i < RuleTable::kMaxProbes; ++i) {
    EXPECT_EQ(OffsetOf(pcs[i]), static_cast<int>(i));
  }
}

TEST_F(RuleTableTest, GrowsAndKeepsWhatItHas) {
  RuleTable::Insert(RuleTable::Lookup(0x401000, false), 0, RuleWith(0));
  const size_t entries = RuleTable::entries();
  const uint64_t former_bytes = RuleTable::former_bytes();
  const auto pc_of = [](size_t i) { return 0x401000 + i * 24; };
  for (size_t i = 1; i < entries; ++i) {
    ASSERT_EQ(RuleTable::Insert(RuleTable::Lookup(pc_of(i), false), 0, RuleWith(static_cast<int>(i))),
              RuleTable::Inserted::kYes);
  }
  EXPECT_GE(RuleTable::entries(), 2 * entries);
  EXPECT_EQ(RuleTable::memory_bytes(), RuleTable::entries() * sizeof(RuleTable::Entry));
  EXPECT_EQ(RuleTable::former_bytes() - former_bytes,
            (RuleTable::entries() - entries) * sizeof(RuleTable::Entry))
      << "each table but the last, and they doubled";
  for (size_t i = 0; i < entries; ++i) ASSERT_EQ(OffsetOf(pc_of(i)), static_cast<int>(i));
}

TEST_F(RuleTableTest, GrowsUnderThreadsThatLookAndInsert) {
  constexpr size_t kRules = 60'000;
  const auto pc_of = [](size_t i) { return 0x10'000'000 + i * 24; };
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t n = 0; n < kRules; ++n) {
        const size_t i = (n * 7919 + t * 31) % kRules;
        const int found = OffsetOf(pc_of(i));
        if (found != -1) {
          ASSERT_EQ(found, static_cast<int>(i));
        } else {
          RuleTable::Insert(RuleTable::Lookup(pc_of(i), false), 0, RuleWith(static_cast<int>(i)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  size_t kept = 0;
  for (size_t i = 0; i < kRules; ++i) kept += OffsetOf(pc_of(i)) == static_cast<int>(i);
  EXPECT_GT(kept, kRules * 9 / 10) << "what a copy missed is inserted at the next miss";
}

// Every address of this program belongs to the instance the test names.
uint16_t g_current_tag;
uint16_t CurrentTag(const dl_find_object*, uintptr_t, bool*) { return g_current_tag; }

TEST_F(RuleTableTest, HonoursATagOnlyWhileItsInstanceIsCurrent) {
  SetInstanceOf(CurrentTag);
  g_current_tag = 7;
  const auto pc = reinterpret_cast<uintptr_t>(&CurrentTag) + 4;
  RuleTable::Insert(RuleTable::Lookup(pc, false), 7, RuleWith(8));
  EXPECT_EQ(OffsetOf(pc), 8);

  BeginClose();
  EXPECT_EQ(OffsetOf(pc), -1) << "modules are going away";
  EndClose(false);
  EXPECT_EQ(OffsetOf(pc), 8) << "none did";

  BeginClose();
  g_current_tag = 8;
  EndClose(true);
  EXPECT_EQ(OffsetOf(pc), -1) << "another instance lies there now";
  RuleTable::Insert(RuleTable::Lookup(pc, false), 8, RuleWith(16));
  EXPECT_EQ(OffsetOf(pc), 16);

  BeginClose();
  g_current_tag = 8;
  EndClose(true);
  EXPECT_EQ(OffsetOf(pc), 16) << "another module was unloaded, this one is the same";
}

// A plugin that is loaded again and again at one address: what is left of its last instances is taken over.
TEST_F(RuleTableTest, WhatIsLeftOfModulesThatAreGoneIsUsedAgain) {
  SetInstanceOf(CurrentTag);
  const auto pc = reinterpret_cast<uintptr_t>(&CurrentTag) + 6;
  for (uint16_t tag = 1000; tag < 3000; ++tag) {
    g_current_tag = tag;
    ASSERT_NE(RuleTable::Insert(RuleTable::Lookup(pc, false), tag, RuleWith(8 * (tag % 100))), RuleTable::Inserted::kFull)
        << tag;
    ASSERT_EQ(OffsetOf(pc), 8 * (tag % 100));
    BeginClose();
    RetireTag(tag);
    g_current_tag = 0;
    EndClose(true);
    ASSERT_EQ(OffsetOf(pc), -1) << "nobody may take it for another's";
  }
}

// Each time at another address, and more than the largest table has entries: they go when it is copied.
TEST_F(RuleTableTest, ModulesThatAreGoneDoNotFillTheTable) {
  SetInstanceOf(CurrentTag);
  constexpr uintptr_t kRules = 500;
  for (uint16_t tag = 4000; tag < 4700; ++tag) {
    g_current_tag = tag;
    for (uintptr_t i = 0; i < kRules; ++i) {
      ASSERT_NE(RuleTable::Insert(RuleTable::Lookup(0x7000'0000'0000 + (tag * kRules + i) * 16, false), tag, RuleWith(8)),
                RuleTable::Inserted::kFull) << tag;
    }
    RetireTag(tag);
  }
  static_assert(700 * kRules > size_t{1} << RuleTable::kLargestBits);
}

// After so long a handler jumps away from what a thread does in Do(), once.
class Jump {
 public:
  explicit Jump(int microseconds) {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      if (armed_ == 0) return;
      armed_ = 0;
      siglongjmp(away_, 1);
    };
    sigaction(SIGALRM, &action, &before_);
    const itimerval once = {{0, 0}, {0, microseconds}};
    setitimer(ITIMER_REAL, &once, nullptr);
  }
  ~Jump() {
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    signal(SIGALRM, SIG_IGN);  // also one that is blocked
    sigaction(SIGALRM, &before_, nullptr);
  }
  // False: a handler has jumped away from it.
  template <typename Function>
  static bool Do(Function function) {
    if (sigsetjmp(away_, 1) != 0) return false;
    armed_ = 1;
    function();
    armed_ = 0;
    return true;
  }

 private:
  struct sigaction before_;
  static inline thread_local sigjmp_buf away_;
  static inline thread_local volatile sig_atomic_t armed_ = 0;
};

// Of 64 KiB with all their page faults: some handlers strike in the midst of that.
TEST_F(RuleTableTest, ATableThatAThreadLeavesHalfDoneIsMadeByTheNext) {
  const auto insert = [](uintptr_t i) {
    return RuleTable::Insert(RuleTable::Lookup(0x401000 + i * 16, false), 0, RuleWith(8));
  };
  int left = 0;
  for (int microseconds = 5; microseconds < 100; ++microseconds) {
    RuleTable::BeginAnewForTesting();
    sigset_t alarm, before;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, &before);
    std::thread([&] {
      const Jump jump(microseconds);
      pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
      left += !Jump::Do([&] { insert(0); });
      pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    }).join();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    for (uintptr_t i = 0; i < 2000; ++i) ASSERT_NE(insert(i), RuleTable::Inserted::kFull) << i;
    ASSERT_EQ(RuleTable::entries(), size_t{2} << RuleTable::kFirstBits);
  }
  RecordProperty("left", left);
}

// The largest table is copied where modules are gone, also when a handler has jumped away from that.
TEST_F(RuleTableTest, ModulesThatAreGoneAreLeftOutThoughAHandlerJumpsAway) {
  SetInstanceOf(CurrentTag);
  constexpr uintptr_t kRules = 500;
  constexpr uint16_t kFirst = 5000, kTags = 300;
  const auto insert = [&](uintptr_t tag, uintptr_t i) {
    const uintptr_t pc = 0x7000'0000'0000 + (tag * kRules + i) * 16;
    return RuleTable::Insert(RuleTable::Lookup(pc, false), static_cast<uint16_t>(tag), RuleWith(8));
  };
  uint16_t first = kFirst;
  for (const int microseconds : {300, 600, 1000, 2000, 4000}) {
    RuleTable::BeginAnewForTesting();
    for (uint16_t tag = first; tag < first + kTags; ++tag) {
      for (uintptr_t i = 0; i < kRules; ++i)
        ASSERT_NE(insert(tag, i), RuleTable::Inserted::kFull);
    }
    ASSERT_EQ(RuleTable::entries(), size_t{1} << RuleTable::kLargestBits);
    for (uint16_t tag = first; tag < first + kTags; ++tag) RetireTag(tag);
    first = static_cast<uint16_t>(first + kTags);
    {
      const Jump jump(microseconds);
      Jump::Do([&] { insert(first, 0); });
    }
    for (uint16_t tag = first; tag < first + kTags; ++tag) {
      for (uintptr_t i = 0; i < kRules; ++i)
        ASSERT_NE(insert(tag, i), RuleTable::Inserted::kFull) << microseconds << " us";
    }
    first = static_cast<uint16_t>(first + kTags);
  }
}

TEST_F(RuleTableTest, AForkChildHasNoCallsUnderWay) {
  SetInstanceOf(CurrentTag);
  g_current_tag = 10;
  const auto pc = reinterpret_cast<uintptr_t>(&CurrentTag) + 7;
  RuleTable::Insert(RuleTable::Lookup(pc, false), 10, RuleWith(8));
  BeginClose();
  EXPECT_EQ(OffsetOf(pc), -1);
  ForgetCloses();
  EXPECT_EQ(OffsetOf(pc), 8);
  EndClose(false);  // the caller's own, which goes on
  EXPECT_FALSE(CurrentEpoch().closing());
  EXPECT_EQ(OffsetOf(pc), 8);
}

TEST_F(RuleTableTest, TwoClosesAtOnceBothCount) {
  SetInstanceOf(CurrentTag);
  g_current_tag = 9;
  const auto pc = reinterpret_cast<uintptr_t>(&CurrentTag) + 5;
  RuleTable::Insert(RuleTable::Lookup(pc, false), 9, RuleWith(8));
  BeginClose();
  BeginClose();
  EndClose(true);
  EXPECT_EQ(OffsetOf(pc), -1);
  EndClose(false);
  EXPECT_EQ(OffsetOf(pc), 8);
}

TEST_F(RuleTableTest, ThreadsSeeWholeRulesOnly) {
  constexpr int kPcs = 20'000;
  const auto pc_of = [](int i) {
    return uintptr_t{0x7f0000000000} + static_cast<uintptr_t>(i) * 29;
  };
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < kPcs; ++n) {
        const int i = (n * 7919 + t * 5003) % kPcs;
        const int before = OffsetOf(pc_of(i));
        if (before != -1 && before != i) ++wrong;
        RuleTable::Insert(RuleTable::Lookup(pc_of(i), false), 0, RuleWith(i));
        const int after = OffsetOf(pc_of(i));  // -1: another thread is about to store it
        if (after != -1 && after != i) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (int i = 0; i < kPcs; ++i) EXPECT_EQ(OffsetOf(pc_of(i)), i);
}

}  // namespace
}  // namespace memtrace::unwind
