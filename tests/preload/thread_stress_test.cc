// Threads that come and go, with the real ThreadState, EventRing, BlockOwners and TraceFile.
// The file that comes of it is read here by a reader of its own: every block once, every
// event whole, and as many as were recorded.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "format/checksum.h"
#include "format/event_words.h"
#include "format/trace_format.h"
#include "format/word_codec.h"
#include "preload/call_site.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/thread_state.h"

namespace memtrace {
namespace {

using format::BlockHeader;
using format::RingHeader;

struct Contents {
  uint64_t allocations = 0, frees = 0;
  std::map<uint32_t, std::map<uint32_t, int>> blocks;  // thread, sequence -> how many
};

void CountEvents(const uint64_t* word, const uint64_t* end, Contents* contents) {
  while (word < end) {
    const uint32_t words = format::EventWords(*word);
    ASSERT_NE(words, 0u);
    contents->allocations += format::KindOf(*word) == format::EventKind::kMalloc;
    contents->frees += format::KindOf(*word) == format::EventKind::kFree;
    word += words;
  }
  ASSERT_EQ(word, end);
}

void ReadTrace(const std::string& path, Contents* contents) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<const RingHeader*> rings;
  size_t at = sizeof(format::FileHeader);
  while (at + sizeof(BlockHeader) <= bytes.size()) {
    BlockHeader header;
    memcpy(&header, bytes.data() + at, sizeof(header));
    ASSERT_EQ(header.magic, format::kBlockMagic) << "at " << at;
    const char* payload = bytes.data() + at + sizeof(header);
    if (header.kind == format::BlockKind::kEvents) {
      ASSERT_EQ(format::Checksum(payload, header.payload_bytes), header.payload_checksum);
      ASSERT_EQ(header.dropped_events, 0u);
      ++contents->blocks[header.thread][header.sequence];
      std::vector<uint64_t> words(header.content_bytes / 8);
      if (header.codec == format::Codec::kWords) {
        ASSERT_TRUE(format::DecodeWords(reinterpret_cast<const uint8_t*>(payload),
                                        header.payload_bytes,
                                        reinterpret_cast<uint8_t*>(words.data()), words.size()));
      } else {
        memcpy(words.data(), payload, header.payload_bytes);
      }
      CountEvents(words.data(), words.data() + words.size(), contents);
    } else if (header.kind == format::BlockKind::kRing) {
      const size_t ring = (at + sizeof(header) + format::kRingAlignment - 1) /
                          format::kRingAlignment * format::kRingAlignment;
      rings.push_back(reinterpret_cast<const RingHeader*>(bytes.data() + ring));
    }
    at += (sizeof(header) + header.payload_bytes + 63) / 64 * 64;
  }
  for (const RingHeader* ring : rings) {
    if (ring->magic != format::kRingMagic || ring->committed_bytes == 0) continue;
    ASSERT_EQ(++contents->blocks[ring->thread][ring->sequence], 1) << "in a block and in a ring";
    std::vector<uint64_t> words(ring->committed_bytes / 8);
    memcpy(words.data(), ring + 1, ring->committed_bytes);
    CountEvents(words.data(), words.data() + words.size(), contents);
  }
}

constexpr int kAtOnce = 6, kPassed = 32;

std::atomic<void*> g_passed[kPassed];

[[gnu::noinline]] void* Allocate(size_t bytes) {
  const CallSite site = CALL_SITE();
  void* block = std::malloc(bytes);
  RecordAllocInAnyMode(EventKind::kMalloc, AllocFunction::kMalloc, block, bytes, site);
  return block;
}

#ifdef __SANITIZE_THREAD__
constexpr char kOrderByTheKernel[] =
    "a state is taken over when the kernel knows of no such task any more, an order that "
    "ThreadSanitizer does not see";
#endif

[[gnu::noinline]] void Free(void* block) {
  if (block == nullptr) return;
  RecordFreeInAnyMode(block, CALL_SITE());
  std::free(block);
}

// A block to whoever comes next, and the one that was there freed.
void Work(int events, unsigned seed) {
  for (int i = 0; i < events; ++i) {
    seed = seed * 1664525 + 1013904223;
    Free(g_passed[seed >> 8 & (kPassed - 1)].exchange(Allocate(16 + (seed >> 20 & 255))));
    Free(Allocate(24));
  }
}

int States() {
  int states = 0;
  for (ThreadState* state = FirstThread(); state != nullptr; state = state->next_state) ++states;
  return states;
}

TEST(ThreadStressTest, EveryBlockOnceAndEveryEventWhole) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << kOrderByTheKernel;
#endif
  {
    const Section section;  // the trace is that of this test program, in its directory
    ASSERT_TRUE(section);
  }
  g_process.allocator_is_glibc = false;  // under AddressSanitizer a block has no chunk header

  // Some fill small rings, some large ones, most neither.
  constexpr int kThreads = 120;
  std::atomic<int> next{0};
  std::atomic<uint64_t> pairs{0};
  const auto runner = [&] {
    for (int i; (i = next.fetch_add(1)) < kThreads;) {
      const int events = i % 10 == 0 ? 6000 : i % 3 == 0 ? 400 : 5;
      pairs += 2 * static_cast<uint64_t>(events);
      std::thread([=] { Work(events, static_cast<unsigned>(i)); }).join();
    }
  };
  std::vector<std::thread> runners;
  for (int i = 0; i < kAtOnce; ++i) runners.emplace_back(runner);
  for (std::thread& each : runners) each.join();
  uint64_t freed_late = 0;
  for (std::atomic<void*>& passed : g_passed) {
    if (void* block = passed.exchange(nullptr)) {
      Free(block);
      ++freed_late;
    }
  }
  EXPECT_GT(freed_late, 0u);
  EXPECT_EQ(g_process.missed_events.load(), 0u);

  Contents contents;
  ReadTrace(g_process.file.path(), &contents);
  EXPECT_EQ(contents.allocations, pairs.load());
  EXPECT_EQ(contents.frees, pairs.load());
  EXPECT_EQ(contents.blocks.size(), kThreads + 1u);
  EXPECT_LE(States(), 3 * kAtOnce) << "states of dead threads serve again";
  for (const auto& [thread, sequences] : contents.blocks) {
    uint32_t expected = 1;
    for (const auto& [sequence, times] : sequences) {
      EXPECT_EQ(sequence, expected++) << "of thread " << thread;
      EXPECT_EQ(times, 1) << "of thread " << thread;
    }
  }
}

// The states of threads that live lie in a row, which sixteen that begin at once cross together.
// Behind EveryBlockOnceAndEveryEventWhole, which has the trace for itself.
TEST(ThreadStressTest, ThreadsThatBeginAtOnceMakeFewStates) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << kOrderByTheKernel;
#endif
  constexpr int kLive = 300, kBegin = 16, kRounds = 1500;
  const auto attach = [] {
    const Section section;
    EXPECT_TRUE(section);
  };
  attach();
  const int before = States();
  std::latch all_live(kLive + 1), over(1);
  std::vector<std::thread> live;
  for (int i = 0; i < kLive; ++i) {
    live.emplace_back([&] {
      attach();
      all_live.count_down();
      over.wait();
    });
  }
  all_live.arrive_and_wait();
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> here{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kBegin; ++i) {
      threads.emplace_back([&] {
        ++here;
        while (here.load() < kBegin) std::this_thread::yield();
        attach();
      });
    }
    for (std::thread& each : threads) each.join();
  }
  EXPECT_LE(States() - before, kLive + kLive / 7 + 2 * kBegin);
  over.count_down();
  for (std::thread& each : live) each.join();
}

}  // namespace
}  // namespace memtrace
