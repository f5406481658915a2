// The ring, the spool and the change of owners (docs/event-ring.md) as a model, and every
// state that it can come to: threads write events, spool, end, and take over the rings of
// those that ended, in every order of their steps, and the process may be killed behind
// each one. In each state a reader must find exactly the events that were committed, each
// once, in the order and under the number of their thread.
//
// The model is also run with one step left out or in the wrong place. Then a state must be
// found in which that does not hold, or the model would not tell anything.
//
// A step is what the hardware and the kernel do at once: a store of a word, a
// compare-and-swap, a part of a write to the file. What one thread does to shared memory
// others see in its order (the stores that matter are releases), so the states are all.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "tests/long_run.h"

namespace memtrace {
namespace {

enum class RingMistake : uint8_t {
  kNone,
  kNumberedFirst,       // the ring gets its next number before it is emptied
  kCommittedFirst,      // an event is committed before its words are there
  kEmptiedFirst,        // the ring is emptied before its block is whole
  kClaimedByStore,      // a dead thread's state is claimed without compare-and-swap
  kRenamedFirst,        // the ring gets its new owner's number before it is spooled
  kEnlargedFirst,       // the small ring is disowned before its block is whole
  kNotDisowned,         // a small ring that another replaced is emptied, numbered anew and kept
  kLeftovers,           // what a thread had not committed when it ended is spooled too
};

constexpr int kThreads = 3, kStates = 3, kRings = 6, kSerials = 6, kBlocks = 4, kBlockWords = 4;

struct Ring {
  uint8_t magic = 0, thread = 0, sequence = 0, committed = 0;
  std::array<uint8_t, kBlockWords> words{};
};
// ThreadState.
struct Owned {
  uint8_t owner = 0, ring = 0, next = 0, serial = 0, sequence = 0, capacity = 0;
};
struct Block {
  uint8_t written = 0;  // 0 not, 1 in part, 2 whole
  uint8_t size = 0;
  std::array<uint8_t, kBlockWords> words{};
};
enum At : uint8_t {
  kLook, kAsk, kClaim, kMake, kRenameEarly, kSerial, kRenamed, kNumberedOne, kReady,
  kBetween, kFirstWord, kSecondWord, kCommit,
  kSpool, kPart, kWhole, kCount, kEmpty, kNumber, kNewRing, kNewNamed, kNewReady, kSwitch, kSpooled,
  kEnded
};
struct Thread {
  uint8_t at = kLook, state = 0, seen = 0, events = 0, written = 0;
  uint8_t then = 0;   // after the spool
  uint8_t bytes = 0;  // that it writes
  uint8_t fresh = 0;  // the ring to come
};
struct World {
  std::array<Ring, kRings> rings{};
  std::array<Owned, kStates> states{};
  std::array<Block, kSerials * kBlocks> blocks{};
  std::array<Thread, kThreads> threads{};
  std::array<uint8_t, kSerials> committed{};  // what is true
  uint8_t state_count = 0, ring_count = 0, next_serial = 1, twice = 0;
};
static_assert(std::has_unique_object_representations_v<World>);

uint8_t Word(int serial, int event, int half) {
  return static_cast<uint8_t>(serial << 5 | event << 1 | half);
}

class RingModel {
 public:
  // `events`: that each thread has, 0 for no thread.
  RingModel(RingMistake mistake, std::array<uint8_t, kThreads> events)
      : mistake_(mistake), events_(events) {}

  // The first state that a reader misunderstands, told; empty: there is none.
  std::string Explore() {
    World first;
    for (int t = 0; t < kThreads; ++t) {
      first.threads[t].events = events_[t];
      if (events_[t] == 0) first.threads[t].at = kEnded;
    }
    Visit(first);
    while (!open_.empty() && fault_.empty()) {
      const World world = open_.front();
      open_.pop_front();
      for (int t = 0; t < kThreads && fault_.empty(); ++t) {
        const Thread& thread = world.threads[t];
        if (thread.at == kEnded) continue;
        World next = world;
        Step(next, t);
        Visit(next);
        // A handler ends the thread in the midst of an event. Not in a spool: signals are blocked.
        if (thread.at >= kBetween && thread.at <= kCommit) {
          next = world;
          next.threads[t].at = kEnded;
          Visit(next);
        }
      }
    }
    return fault_;
  }
  size_t states() const { return seen_.size(); }

 private:
  struct Hash {
    size_t operator()(unsigned __int128 key) const { return static_cast<size_t>(key); }
  };

  void Visit(const World& world) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&world);
    uint64_t a = 14695981039346656037u, b = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < sizeof(world); ++i) {
      a = (a ^ bytes[i]) * 1099511628211u;
      b = (b ^ bytes[i]) * 0xd6e8feb86659fd93 ^ b >> 32;
    }
    if (!seen_.insert(static_cast<unsigned __int128>(a) << 64 | b).second) return;
    Read(world);
    open_.push_back(world);
  }

  // What the reader makes of the file if the process is killed now.
  void Read(const World& world) {
    if (world.twice != 0) fault_ = "a block was written twice";
    for (int serial = 1; serial < world.next_serial; ++serial) {
      std::vector<uint8_t> words;
      for (int sequence = 1; sequence < kBlocks; ++sequence) {
        const Block& block = world.blocks[serial * kBlocks + sequence];
        if (block.written == 2) {
          words.insert(words.end(), block.words.begin(), block.words.begin() + block.size);
        }
        for (const Ring& ring : world.rings) {
          if (ring.magic == 0 || ring.thread != serial || ring.sequence != sequence) continue;
          if (block.written == 2) continue;  // a copy
          words.insert(words.end(), ring.words.begin(), ring.words.begin() + ring.committed);
        }
      }
      const size_t events = world.committed[serial];
      bool right = words.size() == 2 * events;
      for (size_t i = 0; right && i < words.size(); ++i) {
        right = words[i] == Word(serial, static_cast<int>(i / 2), i % 2);
      }
      if (!right) {
        fault_ = "thread " + std::to_string(serial) + " committed " + std::to_string(events) +
                 " events, the reader finds " + std::to_string(words.size()) + " words";
      }
    }
  }

  void Step(World& w, int t) const {
    Thread& thread = w.threads[t];
    const uint8_t me = static_cast<uint8_t>(t + 1);
    Owned& mine = w.states[thread.state];
    Ring& ring = w.rings[mine.ring];
    switch (thread.at) {
      case kLook:
        if (thread.state == w.state_count) {
          thread.at = kMake;
        } else {
          thread.seen = mine.owner;
          thread.at = kAsk;
        }
        return;
      case kAsk:
        if (w.threads[thread.seen - 1].at == kEnded) {
          thread.at = kClaim;
        } else {
          ++thread.state;
          thread.at = kLook;
        }
        return;
      case kClaim:
        if (mistake_ != RingMistake::kClaimedByStore && mine.owner != thread.seen) {
          ++thread.state;
          thread.at = kLook;
          return;
        }
        mine.owner = me;
        mine.next = ring.committed;
        if (mistake_ == RingMistake::kLeftovers) {
          mine.next = static_cast<uint8_t>((mine.next + 2) % 6);
        }
        thread.then = kSerial;
        thread.at = mine.next == 0 ? kSerial
                    : mistake_ == RingMistake::kRenamedFirst ? kRenameEarly : kSpool;
        return;
      case kRenameEarly:
        ring.thread = w.next_serial;
        thread.at = kSpool;
        return;
      case kMake:
        thread.state = w.state_count++;
        w.states[thread.state] = {me, w.ring_count++, 0, 0, 0, 2};
        thread.at = kSerial;
        return;
      case kSerial:
        mine.serial = w.next_serial++;
        mine.sequence = 1;
        mine.next = 0;
        ring.committed = 0;
        thread.at = kRenamed;
        return;
      case kRenamed:
        ring.thread = mine.serial;
        thread.at = kNumberedOne;
        return;
      case kNumberedOne:
        ring.sequence = 1;
        thread.at = kReady;
        return;
      case kReady:
        ring.magic = 1;
        thread.at = kBetween;
        return;
      case kBetween:
        if (thread.events == 0) {
          thread.at = kEnded;
        } else if (mine.next + 2 > mine.capacity) {
          thread.then = kBetween;
          thread.at = kSpool;
        } else {
          thread.at = mistake_ == RingMistake::kCommittedFirst ? kCommit : kFirstWord;
        }
        return;
      case kFirstWord:
        ring.words[mine.next] = Word(mine.serial, thread.written, 0);
        thread.at = kSecondWord;
        return;
      case kSecondWord:
        ring.words[mine.next + 1] = Word(mine.serial, thread.written, 1);
        if (mistake_ == RingMistake::kCommittedFirst) {
          EndEvent(w, thread, mine);
        } else {
          thread.at = kCommit;
        }
        return;
      case kCommit:
        ring.committed = static_cast<uint8_t>(mine.next + 2);
        ++w.committed[mine.serial];
        if (mistake_ == RingMistake::kCommittedFirst) {
          thread.at = kFirstWord;
        } else {
          EndEvent(w, thread, mine);
        }
        return;
      case kSpool:
        thread.bytes = mine.next;
        thread.at = mistake_ == RingMistake::kEmptiedFirst ? kEmpty
                    : mistake_ == RingMistake::kEnlargedFirst && mine.capacity < kBlockWords
                        ? kNewRing
                        : kPart;
        return;
      case kPart: {
        Block& block = w.blocks[mine.serial * kBlocks + mine.sequence];
        w.twice |= block.written != 0;
        block.written = 1;
        thread.at = kWhole;
        return;
      }
      case kWhole: {
        Block& block = w.blocks[mine.serial * kBlocks + mine.sequence];
        block.written = 2;
        block.size = thread.bytes;
        const uint8_t from = mistake_ == RingMistake::kEnlargedFirst && mine.capacity < kBlockWords
                                 ? thread.seen : mine.ring;
        for (int i = 0; i < thread.bytes; ++i) block.words[i] = w.rings[from].words[i];
        thread.at = kCount;
        return;
      }
      case kCount:
        ++mine.sequence;
        if (mine.capacity < kBlockWords && thread.then == kBetween) {
          thread.at = mistake_ == RingMistake::kEnlargedFirst ? kSwitch : kNewRing;
        } else if (mistake_ == RingMistake::kEmptiedFirst) {
          thread.at = kNumber;
        } else {
          thread.at = mistake_ == RingMistake::kNumberedFirst ? kNumber : kEmpty;
        }
        return;
      case kEmpty:
        ring.committed = 0;
        mine.next = 0;
        thread.at = mistake_ == RingMistake::kEmptiedFirst ? kPart
                    : mistake_ == RingMistake::kNumberedFirst ? kSpooled : kNumber;
        return;
      case kNumber:
        ring.sequence = mine.sequence;
        thread.at = mistake_ == RingMistake::kNumberedFirst ? kEmpty : kSpooled;
        return;
      case kNewRing:
        thread.fresh = w.ring_count++;
        w.rings[thread.fresh].thread = mine.serial;
        thread.at = kNewNamed;
        return;
      case kNewNamed:
        w.rings[thread.fresh].sequence = static_cast<uint8_t>(
            mine.sequence + (mistake_ == RingMistake::kEnlargedFirst));
        thread.at = kNewReady;
        return;
      case kNewReady:
        w.rings[thread.fresh].magic = 1;
        thread.at = kSwitch;
        if (mistake_ == RingMistake::kEnlargedFirst) {
          thread.seen = mine.ring;
          ring.magic = 0;
          thread.at = kPart;
        }
        return;
      case kSwitch:
        if (mistake_ == RingMistake::kNotDisowned) {
          ring.sequence = mine.sequence;  // still with its events
        } else {
          ring.magic = 0;
        }
        mine.ring = thread.fresh;
        mine.capacity = kBlockWords;
        mine.next = 0;
        thread.at = kSpooled;
        return;
      case kSpooled:
        thread.at = thread.then;
        return;
      default:
        return;
    }
  }

  static void EndEvent(World&, Thread& thread, Owned& mine) {
    mine.next = static_cast<uint8_t>(mine.next + 2);
    ++thread.written;
    --thread.events;
    thread.at = kBetween;
  }

  const RingMistake mistake_;
  const std::array<uint8_t, kThreads> events_;
  std::deque<World> open_;
  std::unordered_set<unsigned __int128, Hash> seen_;
  std::string fault_;
};

constexpr std::array<uint8_t, kThreads> kSpooling = {5, 3, 0};  // two threads, several blocks
constexpr std::array<uint8_t, kThreads> kRacing = {1, 1, 1};    // two newcomers, one ring

// One thread explores: a sanitizer finds nothing here, and takes minutes.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MEMTRACE_SKIP_IF_SLOW() GTEST_SKIP() << "with a sanitizer it takes minutes"
#else
#define MEMTRACE_SKIP_IF_SLOW() static_cast<void>(0)
#endif

TEST(RingModelTest, AKillAnywhereLosesNothingAndDoublesNothing) {
  MEMTRACE_SKIP_IF_SLOW();
  std::vector<std::array<uint8_t, kThreads>> worlds = {kSpooling, kRacing};
  if (InLongRun()) worlds.push_back({2, 2, 1});
  for (const auto& events : worlds) {
    RingModel model(RingMistake::kNone, events);
    EXPECT_EQ(model.Explore(), "");
    EXPECT_GT(model.states(), 1000u);
    printf("%zu states\n", model.states());
  }
}

TEST(RingModelTest, EachStepIsNeeded) {
  MEMTRACE_SKIP_IF_SLOW();
  for (const RingMistake mistake :
       {RingMistake::kNumberedFirst, RingMistake::kCommittedFirst, RingMistake::kEmptiedFirst,
        RingMistake::kClaimedByStore, RingMistake::kRenamedFirst, RingMistake::kEnlargedFirst,
        RingMistake::kNotDisowned, RingMistake::kLeftovers}) {
    EXPECT_NE(RingModel(mistake, kSpooling).Explore() + RingModel(mistake, kRacing).Explore(), "")
        << static_cast<int>(mistake);
  }
}

}  // namespace
}  // namespace memtrace
