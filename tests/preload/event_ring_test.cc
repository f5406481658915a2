#include "preload/event_ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <vector>

namespace memtrace {
namespace {

using format::RingHeader;

class EventRingTest : public testing::Test {
 protected:
  void SetUp() override {
    mapping_ = mmap(nullptr, EventRing::kBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapping_, MAP_FAILED);
    ring_.Attach(mapping_, EventRing::kBytes, 7, 1);
  }
  void TearDown() override { munmap(mapping_, EventRing::kBytes); }

  const RingHeader& header() const { return *static_cast<const RingHeader*>(mapping_); }
  const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(&header() + 1); }

  void* mapping_ = nullptr;
  EventRing ring_;
};

constexpr size_t kWords = (EventRing::kBytes - sizeof(RingHeader)) / 8;

TEST_F(EventRingTest, IsEmptyAndNamedAfterAttach) {
  EXPECT_EQ(header().magic, format::kRingMagic);
  EXPECT_EQ(header().thread, 7u);
  EXPECT_EQ(header().sequence, 1u);
  EXPECT_EQ(header().committed_bytes, 0u);
  EXPECT_EQ(header().capacity_bytes, kWords * 8);
  EXPECT_TRUE(ring_.empty());
  EXPECT_TRUE(ring_.HasRoom(kWords));
  EXPECT_FALSE(ring_.HasRoom(kWords + 1));
}

TEST_F(EventRingTest, ShowsOnlyWhatWasCommitted) {
  ring_.next()[0] = 11;
  ring_.next()[1] = 12;
  EXPECT_EQ(header().committed_bytes, 0u);
  ring_.Commit(2);
  EXPECT_EQ(header().committed_bytes, 16u);
  EXPECT_EQ(words()[0], 11u);
  EXPECT_EQ(words()[1], 12u);
}

TEST_F(EventRingTest, HasNoRoomWhileItIsAskedToSpool) {
  ring_.Attach(mapping_, EventRing::kSmallBytes, 7, 1);
  ring_.AskToSpool();
  EXPECT_FALSE(ring_.HasRoom(1));
  ring_.Restart(7, 2, 0);
  EXPECT_FALSE(ring_.HasRoom(1)) << "until its owner says so";
  EXPECT_EQ(ring_.bytes(), EventRing::kSmallBytes);
  ring_.Open();
  EXPECT_TRUE(ring_.HasRoom(header().capacity_bytes / 8));
  EXPECT_FALSE(ring_.HasRoom(header().capacity_bytes / 8 + 1));
}

// Another thread copies the ring of one that goes on: it is told whether the copy is of one block.
TEST_F(EventRingTest, WhatWasCopiedIsOfOneBlockUntilTheNextOneBegins) {
  ring_.Commit(3);
  const EventRing::Content content = ring_.content();
  EXPECT_EQ(content.thread, 7u);
  EXPECT_EQ(content.sequence, 1u);
  EXPECT_EQ(content.dropped_events, 0u);
  EXPECT_EQ(content.bytes, 24u);
  EXPECT_TRUE(ring_.StillHas(content));
  ring_.Commit(1);
  EXPECT_TRUE(ring_.StillHas(content)) << "what was there is there";
  ring_.Restart(7, 2, 0);
  EXPECT_FALSE(ring_.StillHas(content));
  ring_.Commit(4);
  EXPECT_FALSE(ring_.StillHas(content));
  // A block that could not be written has its number again.
  const EventRing::Content lost = ring_.content();
  ring_.Restart(7, 2, 5);
  ring_.Commit(4);
  EXPECT_FALSE(ring_.StillHas(lost));
  // So has that of a new owner.
  const EventRing::Content old = ring_.content();
  ring_.Restart(8, 2, 5);
  ring_.Commit(4);
  EXPECT_FALSE(ring_.StillHas(old));
}

// A thread that ended in the midst of an event: what it had committed is its last.
TEST_F(EventRingTest, DropsWhatWasNotCommitted) {
  ring_.next()[0] = 11;
  ring_.Commit(1);
  ring_.next()[0] = 12;
  ring_.Commit(1);
  *static_cast<uint32_t*>(static_cast<void*>(static_cast<char*>(mapping_) +
                                            offsetof(RingHeader, committed_bytes))) = 8;
  ring_.DropUncommitted();
  EXPECT_EQ(ring_.used_bytes(), 8u);
  EXPECT_EQ(ring_.begin()[0], 11u);
}

TEST_F(EventRingTest, IsOfTheSizeOfItsMapping) {
  ring_.Attach(mapping_, EventRing::kSmallBytes, 7, 3);
  EXPECT_EQ(ring_.bytes(), EventRing::kSmallBytes);
  EXPECT_EQ(header().capacity_bytes, EventRing::kSmallBytes - sizeof(RingHeader));
  EXPECT_TRUE(ring_.HasRoom(header().capacity_bytes / 8));
  EXPECT_FALSE(ring_.HasRoom(header().capacity_bytes / 8 + 1));
  EventRing::Disown(mapping_);
  EXPECT_EQ(header().magic, 0u);
}

// A vector is the model: what the ring was filled with, in pieces, since it was begun anew.
TEST_F(EventRingTest, FollowsTheModelThroughManyRestarts) {
  std::mt19937 random(1);
  std::vector<uint64_t> model;
  uint64_t next_word = 1;
  uint32_t sequence = 1;
  for (int i = 0; i < 100'000; ++i) {
    const size_t words_now = 1 + random() % 40;
    ASSERT_EQ(ring_.HasRoom(words_now), model.size() + words_now <= kWords);
    if (!ring_.HasRoom(words_now)) {
      ASSERT_EQ(ring_.used_bytes(), model.size() * 8);
      ASSERT_TRUE(std::equal(model.begin(), model.end(), ring_.begin()));
      ring_.Restart(7, ++sequence, 3);
      ASSERT_EQ(header().committed_bytes, 0u);
      ASSERT_EQ(header().sequence, sequence);
      ASSERT_EQ(header().dropped_events, 3u);
      model.clear();
    }
    for (size_t w = 0; w < words_now; ++w) {
      ring_.next()[w] = next_word;
      model.push_back(next_word++);
    }
    ring_.Commit(words_now);
    ASSERT_EQ(header().committed_bytes, model.size() * 8);
  }
  EXPECT_GT(sequence, 100u);
}

// The ring of a process that was killed at any instant: what is committed is
// whole, in order, and at least what the process had counted as done.
TEST_F(EventRingTest, KeepsEveryCommittedEventAfterSigkill) {
  auto* done = static_cast<std::atomic<uint64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    done->store(0);
    ring_.Restart(7, 1, 0);
    const pid_t child = fork();
    if (child == 0) {
      uint32_t sequence = 1;
      for (uint64_t event = 1;; ++event) {
        if (!ring_.HasRoom(3)) ring_.Restart(7, ++sequence, 0);
        for (int w = 0; w < 3; ++w) ring_.next()[w] = event;
        ring_.Commit(3);
        done->store(event, std::memory_order_relaxed);
      }
    }
    usleep(random() % 300);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_EQ(header().committed_bytes % 24, 0u);
    const size_t events = header().committed_bytes / 24;
    for (size_t e = 0; e < events; ++e) {
      for (int w = 1; w < 3; ++w) ASSERT_EQ(words()[e * 3 + w], words()[e * 3]);
      ASSERT_EQ(words()[e * 3], words()[0] + e);
    }
    if (events > 0) {
      ASSERT_GE(words()[events * 3 - 1], done->load());
      ASSERT_LE(words()[events * 3 - 1], done->load() + 1);
    }
  }
  munmap(done, 4096);
}

}  // namespace
}  // namespace memtrace
