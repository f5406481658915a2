// BlockOwners: a model of the protocol, with every step of every thread in every order that a
// random scheduler comes upon, and the lemma of docs/event-order.md:
//
//   e1 and e2 follow each other at an address and are of different threads:
//   the span of e1 begins before the span of e2.
//
// The model is also run with one step left out or in the wrong place. Then the lemma must fail,
// or the model would not tell anything.

#include "preload/block_owners.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "tests/long_run.h"

namespace memtrace {
namespace {

enum class Mistake { kNone, kNoVerify, kReadBeforeClaim, kNoStampAtChange, kLateSwitch };

// What one thread does for one event, a step at a time. Between any two steps other threads
// may take as many as the scheduler likes. Time is the number of the step.
class Model {
 public:
  Model(int threads, int addresses, int entries, Mistake mistake, uint64_t seed)
      : mistake_(mistake),
        random_(seed),
        threads_(threads),
        addresses_(addresses),
        entries_(entries) {}

  // How often the lemma did not hold in so many steps.
  int Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      ++now_;
      Thread& thread = threads_[Choose()];
      Step(thread, static_cast<int>(&thread - threads_.data()) + 1);
    }
    return violations_;
  }
  int changes_of_owner() const { return changes_; }
  int unstamped() const { return unstamped_; }

 private:
  enum class At {
    kBetween,
    kAttach,
    kLookAtSwitch,
    kLoad,
    kReadAlone,
    kLookAgain,
    kClaim,
    kRead,
    kVerify
  };
  struct Thread {
    At at = At::kBetween;
    bool attached = false;
    int address = -1;
    uint64_t span = 0, read = 0;
    int until_due = 1;
    bool stamped = false;
  };
  struct Address {
    bool taken = false;  // an event of it is under way
    int last_thread = 0;
    uint64_t last_span = 0;
  };

  // Bursts of one thread, as processors have them, and preemption at any step.
  size_t Choose() {
    if (random_() % 4 == 0) running_ = random_() % threads_.size();
    return running_;
  }

  int& EntryOf(const Thread& thread) {
    return entries_[static_cast<size_t>(thread.address) % entries_.size()];
  }

  void Step(Thread& t, int tag) {
    switch (t.at) {
      case At::kBetween: {
        if (!t.attached) {
          // The second thread comes when the first has run for a while.
          if (tag != 1 && now_ < 200) return;
          t.at = At::kAttach;
          return;
        }
        // What the thread had last, often: an address out of its cache.
        const size_t i = t.address >= 0 && random_() % 2 == 0 ? static_cast<size_t>(t.address)
                                                              : random_() % addresses_.size();
        if (addresses_[i].taken) return;
        addresses_[i].taken = true;
        t.address = static_cast<int>(i);
        t.stamped = false;
        t.at = At::kLookAtSwitch;
        return;
      }
      case At::kAttach:
        t.attached = true;
        if (tag != 1) sharing_ = true;
        t.at = At::kBetween;
        return;
      case At::kLookAtSwitch:
        if (--t.until_due == 0) {
          t.at = sharing_ ? At::kClaim : At::kReadAlone;
        } else if (sharing_) {
          t.at = At::kLoad;
        } else {
          Done(t, tag);
        }
        return;
      case At::kReadAlone:
        t.read = now_;
        t.at = At::kLookAgain;
        if (mistake_ == Mistake::kLateSwitch) Stamped(t, tag);
        return;
      case At::kLookAgain:
        if (sharing_) {
          t.at = At::kClaim;
        } else {
          Stamped(t, tag);
        }
        return;
      case At::kLoad:
        if (EntryOf(t) == tag || mistake_ == Mistake::kNoStampAtChange) {
          Done(t, tag);
        } else {
          t.at = mistake_ == Mistake::kReadBeforeClaim ? At::kRead : At::kClaim;
        }
        return;
      case At::kClaim:
        EntryOf(t) = tag;
        t.at = At::kRead;
        if (mistake_ == Mistake::kReadBeforeClaim) Stamped(t, tag);
        return;
      case At::kRead:
        t.read = now_;
        t.at = At::kVerify;
        if (mistake_ == Mistake::kNoVerify) Stamped(t, tag);
        if (mistake_ == Mistake::kReadBeforeClaim) t.at = At::kClaim;
        return;
      case At::kVerify:
        if (EntryOf(t) == tag) {
          Stamped(t, tag);
        } else {
          t.at = At::kClaim;
        }
        return;
    }
  }

  void Stamped(Thread& t, int tag) {
    t.span = t.read;
    t.until_due = 16;
    t.stamped = true;
    Done(t, tag);
  }

  void Done(Thread& t, int tag) {
    unstamped_ += !t.stamped;
    Address& address = addresses_[static_cast<size_t>(t.address)];
    if (address.last_thread != 0 && address.last_thread != tag) {
      ++changes_;
      violations_ += address.last_span >= t.span;
    }
    address = {false, tag, t.span};
    t.at = At::kBetween;
  }

  const Mistake mistake_;
  std::mt19937_64 random_;
  uint64_t now_ = 0;
  size_t running_ = 0;
  bool sharing_ = false;
  std::vector<Thread> threads_;
  std::vector<Address> addresses_;
  std::vector<int> entries_;  // tags; several addresses share one
  int violations_ = 0, changes_ = 0, unstamped_ = 0;
};

// Until the first.
int Violations(Mistake mistake, int runs, int* changes = nullptr, int* unstamped = nullptr) {
  int violations = 0;
  for (int run = 0; run < runs && violations == 0; ++run) {
    Model model(2 + run % 4, 3 + run % 7, 1 + run % 5, mistake, static_cast<uint64_t>(run));
    violations += model.Run(3000);
    if (changes != nullptr) *changes += model.changes_of_owner();
    if (unstamped != nullptr) *unstamped += model.unstamped();
  }
  return violations;
}

TEST(BlockOwnersModelTest, SpansFollowEachOtherAtEveryAddress) {
  int changes = 0, unstamped = 0;
  const int runs = InLongRun() ? 200'000 : 4000;
  EXPECT_EQ(Violations(Mistake::kNone, runs, &changes, &unstamped), 0);
  EXPECT_GT(changes, 100'000);
  EXPECT_GT(unstamped, 100'000);
}

TEST(BlockOwnersModelTest, EachStepIsNeeded) {
  EXPECT_GT(Violations(Mistake::kNoVerify, 4000), 0);
  EXPECT_GT(Violations(Mistake::kReadBeforeClaim, 4000), 0);
  EXPECT_GT(Violations(Mistake::kNoStampAtChange, 4000), 0);
  EXPECT_GT(Violations(Mistake::kLateSwitch, 100'000), 0);
}

TEST(BlockOwnersTest, AClaimHoldsUntilTheNext) {
  std::vector<uint16_t> table(BlockOwners::kEntries);
  BlockOwners owners(table.data());
  g_clock.Init();
  constexpr uintptr_t kBlock = 0x7f1234567890;
  EXPECT_FALSE(owners.IsOf(kBlock, 1));
  const uint64_t first = owners.Claim(kBlock, 1);
  EXPECT_TRUE(owners.IsOf(kBlock, 1));
  EXPECT_FALSE(owners.IsOf(kBlock, 2));
  const uint64_t second = owners.Claim(kBlock, 2);
  EXPECT_GT(second, first);
  EXPECT_FALSE(owners.IsOf(kBlock, 1));
}

TEST(BlockOwnersTest, HeapsOfSeveralArenasDoNotShareTheirEntries) {
  // 256 KiB at the start of each of 8 arenas and of the main heap.
  std::vector<int> owners(BlockOwners::kEntries);
  int blocks = 0, shared = 0;
  for (int heap = 0; heap < 9; ++heap) {
    const uintptr_t base =
        heap == 0 ? 0x555555559000 : 0x7fff00000000 + static_cast<uintptr_t>(heap) * (64 << 20);
    for (uintptr_t offset = 0; offset < (256 << 10); offset += 32) {
      int& owner = owners[BlockOwners::IndexOf(base + offset)];
      shared += owner != 0 && owner != heap + 1;
      owner = heap + 1;
      ++blocks;
    }
  }
  EXPECT_LT(shared, blocks / 2);
}

}  // namespace
}  // namespace memtrace
