// The join and the memo against the plain walk: the same frames, whatever the
// program did between two captures.

#include "preload/unwind/stack_join.h"

#include <alloca.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "preload/cross_check.h"
#include "preload/libunwind_oracle.h"
#include "preload/unwind/stack_memo.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

struct Stack {
  std::vector<uint64_t> keys;  // innermost first
  StackMarker marker = StackMarker::kNone;
  uintptr_t sp = 0;
  bool operator==(const Stack& other) const {
    return keys == other.keys && marker == other.marker;
  }
};

// What a thread of the traced program has.
struct Engine {
  StackUnwinder unwinder;
  StackJoin join;
  StackMemo memo;
  std::vector<StackMemo::Entry> memo_memory = std::vector<StackMemo::Entry>(64);
  std::vector<Stack> named;  // the stacks the memo has been told, by name
  size_t memo_hits = 0;
  size_t joined_frames = 0;
  Engine() { memo.Init(memo_memory.data(), 64); }
  size_t give_ups = 0;
};

Engine& ThisThread() {
  thread_local std::unique_ptr<Engine> engine = std::make_unique<Engine>();
  return *engine;
}

[[gnu::always_inline]] inline CallSite Caller() {
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  return {frame[1], reinterpret_cast<uintptr_t>(frame) + 16, frame[0]};
}

[[gnu::noinline]] Stack Walked(const CallSite& site) {
  Stack stack;
  std::vector<uint64_t> keys(kMaxFrames);
  StackUnwinder unwinder;
  const UnwindResult result = unwinder.Capture(site, keys.data(), keys.size());
  stack.keys.assign(keys.begin(), keys.begin() + static_cast<long>(result.frames));
  stack.marker = result.marker;
  stack.sp = site.cfa;
  return stack;
}

[[gnu::noinline]] Stack Joined(const CallSite& site, bool use_memo) {
  Engine& engine = ThisThread();
  const StackMemo::Entry* const known = use_memo ? engine.memo.Find(site, engine.unwinder.primary_stack()) : nullptr;
  if (known != nullptr) {
    ++engine.memo_hits;
    return engine.named[known->stack];
  }
  if (engine.unwinder.Join(site, &engine.join) == StackJoin::Outcome::kGiveUp) {
    ++engine.give_ups;
    return Walked(site);
  }
  Stack stack;
  for (size_t i = engine.join.size(); i > 0; --i) {
    stack.keys.push_back(engine.join.key(i - 1));
  }
  stack.marker = engine.join.marker();
  stack.sp = site.cfa;
  engine.joined_frames += engine.join.shared();
  if (use_memo) {
    engine.memo.Learn(site, engine.join, engine.named.size());
    engine.named.push_back(stack);
  }
  return stack;
}

// Stands for malloc: called at the leaves of the shapes below.
[[gnu::noinline]] void Leaf() {
  const CallSite site = Caller();
  static thread_local unsigned turn = 0;
  const Stack joined = Joined(site, /*use_memo=*/++turn % 4 != 0);
  const Stack walked = Walked(site);
  ASSERT_EQ(joined, walked);
  ASSERT_GT(walked.keys.size(), 3u);
}

// --- Shapes: functions whose frames CFI describes in different ways. ----------

struct Plan {
  std::mt19937 random{7};
  int budget = 0;
};
using Shape = void (*)(Plan&, int depth);
void Next(Plan& plan, int depth);
thread_local volatile uint64_t g_sink;

[[gnu::noinline]] void Plain(Plan& plan, int depth) {
  Next(plan, depth);
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void Variable(Plan& plan, int depth) {  // CFA from rbp
  auto* words = static_cast<volatile char*>(alloca(16 + plan.random() % 20 * 16));
  words[0] = 1;
  Next(plan, depth);
  g_sink = g_sink + static_cast<uint64_t>(words[0]);
}

[[gnu::noinline]] void ManyRegisters(Plan& plan, int depth) {  // rbp holds data
  uint64_t a = g_sink, b = a * 3, c = b ^ 5, d = c + 7, e = d * 11, f = e ^ a;
  Next(plan, depth);
  g_sink = a + b + c + d + e + f;
  Next(plan, depth + 2);
  g_sink = a ^ b ^ c ^ d ^ e ^ f;
}

[[gnu::noinline]] void Realigned(Plan& plan, int depth) {
  alignas(64) volatile char aligned[64];
  aligned[0] = 1;
  Next(plan, depth);
  g_sink = g_sink + static_cast<uint64_t>(aligned[0]);
}

[[gnu::noinline]] void RealignedAndVariable(Plan& plan, int depth) {  // DRAP
  alignas(64) volatile char aligned[64];
  auto* words = static_cast<volatile char*>(alloca(16 + plan.random() % 9 * 32));
  aligned[0] = 1;
  words[0] = 1;
  Next(plan, depth);
  g_sink = g_sink + static_cast<uint64_t>(aligned[0] + words[0]);
}

[[gnu::noinline]] void ThroughLibc(Plan& plan, int depth) {
  struct Context {
    Plan* plan;
    int depth;
    bool called = false;
  } context{&plan, depth};
  int numbers[4] = {3, 1, 2, 0};
  qsort_r(
      numbers, 4, sizeof(int),
      [](const void* a, const void* b, void* data) {
        auto& c = *static_cast<Context*>(data);
        if (!c.called) {
          c.called = true;
          Next(*c.plan, c.depth);
        }
        return *static_cast<const int*>(a) - *static_cast<const int*>(b);
      },
      &context);
}

[[gnu::noinline]] void Thrower(Plan& plan, int depth) {
  try {
    Next(plan, depth);
    throw depth;
  } catch (int) {
    Leaf();  // in a landing pad
  }
}

constexpr Shape kShapes[] = {Plain,     Variable, ManyRegisters,        Plain,  Variable,
                             Realigned, Thrower,  RealignedAndVariable, ThroughLibc};

[[gnu::noinline]] void Next(Plan& plan, int depth) {
  if (testing::Test::HasFatalFailure() || --plan.budget < 0) return;
  if (depth >= 9 || plan.random() % 8 == 0) {
#pragma GCC unroll 1
    for (unsigned i = plan.random() % 6; i > 0; --i) Leaf();  // again from here
    Leaf();
    return;
  }
  for (unsigned i = 0; i < 1 + plan.random() % 3; ++i) {
    kShapes[plan.random() % std::size(kShapes)](plan, depth + 1);
  }
}

void RunRandomProgram(unsigned seed, int budget) {
  Plan plan;
  plan.random.seed(seed);
  while (budget > 0 && !testing::Test::HasFatalFailure()) {
    plan.budget = 5000;
    budget -= 5000;
    Next(plan, 0);
  }
}

// Sanitizers put words into the frames that differ from call to call.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kFewestMemoHits = 100;
#else
constexpr uint64_t kFewestMemoHits = 1'000;
#endif

TEST(StackJoinTest, EqualsTheWalkInARandomProgram) {
  RunRandomProgram(1, 300'000);
  const Engine& engine = ThisThread();
  EXPECT_GT(engine.joined_frames, 100'000u) << "it must have joined, or this shows nothing";
  EXPECT_GT(engine.memo_hits, kFewestMemoHits);
  EXPECT_EQ(engine.give_ups, 0u);
}

TEST(StackJoinTest, EqualsTheWalkInThreads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([t] { RunRandomProgram(100 + t, 100'000); });
  }
  for (std::thread& thread : threads) thread.join();
}

// --- The counter-example to comparing return addresses -------------------------
//
//   run 1   Root -> h -> f(VLA of S bytes)                 -> g -> leaf
//   run 2   Root ->      f(VLA of S + h's frame's bytes)   -> g -> leaf
//
// The leaf's pc and stack pointer are the same, g's return address is the same,
// the word that was f's return address into h lies in f's uninitialised array,
// and the word that was h's return address into Root is now f's.

struct Visit {
  size_t bytes;
  std::function<void(const CallSite&)> leaf;
};

[[gnu::noipa, gnu::optimize("no-omit-frame-pointer")]] void CounterLeaf(Visit& run) {
  const CallSite site = Caller();
  run.leaf(site);
}
[[gnu::noipa, gnu::optimize("no-omit-frame-pointer")]] void G(Visit& run) {
  CounterLeaf(run);
  g_sink = g_sink + 1;
}
[[gnu::noipa]] void F(Visit& run) {
  auto* array = static_cast<volatile char*>(alloca(run.bytes));
  g_sink = reinterpret_cast<uintptr_t>(array);  // uninitialised on purpose
  G(run);
  g_sink = g_sink + 1;
}
[[gnu::noipa, gnu::optimize("no-omit-frame-pointer")]] void H(Visit& run) {
  volatile char frame[48];
  frame[0] = 1;
  F(run);
  g_sink = g_sink + static_cast<uint64_t>(frame[0]);
}
[[gnu::noipa]] void Root(void (*visit)(Visit&), Visit& run) {
  visit(run);  // the one call site
  g_sink = g_sink + 1;
}

[[gnu::noipa]] void RootForEach(Visit* visits, size_t count) {
  for (size_t i = 0; i < count; ++i) Root(i == 0 ? H : F, visits[i]);
}

class CounterExampleTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 256;

  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "TSan's calls write over the words below the stack that this is about";
#endif
    uintptr_t wanted = 0, got = 0;
    Visit run{kBytes, [&](const CallSite& site) { wanted = site.cfa; }};
    Root(H, run);
    run.leaf = [&](const CallSite& site) { got = site.cfa; };
    for (bytes_ = kBytes; bytes_ < kBytes + 512 && got != wanted; bytes_ += 16) {
      run.bytes = bytes_;
      Root(F, run);
      if (got == wanted) break;
    }
    ASSERT_EQ(got, wanted) << "no array makes the leaf's stack pointers equal";
  }

  // Both runs, one after the other, with nothing on the stack in between.
  void RunBoth(bool return_addresses_only) {
    Visit visits[2] = {{kBytes,
                        [&](const CallSite& site) {
                          first_ = Joined(site, /*use_memo=*/false);
                          if (return_addresses_only) {
                            ThisThread().join.TrustReturnAddressesForTesting();
                          }
                        }},
                       {bytes_, [&](const CallSite& site) {
                          second_ = Joined(site, /*use_memo=*/false);
                          truth_ = Walked(site);
                          CrossCheck(site);
                        }}};
    RootForEach(visits, 2);
  }

  void CrossCheck(const CallSite& site) {
    static const char* const trouble = OpenLibunwind();  // once: what it makes is never unmade
    if (trouble != nullptr) return;
    std::vector<OracleFrame> frames(kMaxFrames);
    auto pages = std::make_unique<ProbedPages>();
    OracleStack oracle = {.frames = frames.data(), .capacity = frames.size()};
    UnwindByLibunwind(CurrentRegisters(), site, pages.get(), &oracle);
    size_t at;
    const auto compare = [&](const Stack& stack) {
      return CompareStacks(stack.keys.data(), stack.keys.size(), stack.marker, oracle, &at);
    };
    truth_checked_ = compare(truth_);
    second_checked_ = compare(second_);
  }

  size_t bytes_ = 0;
  Stack first_, second_, truth_;
  format::CrossCheckResult truth_checked_ = format::CrossCheckResult::kNotUnwound;
  format::CrossCheckResult second_checked_ = format::CrossCheckResult::kNotUnwound;
};

TEST_F(CounterExampleTest, TheReadSetTellsTheTwoStacksApart) {
  for (int i = 0; i < 10; ++i) {
    RunBoth(/*return_addresses_only=*/false);
    EXPECT_EQ(second_, truth_);
    EXPECT_EQ(first_.keys.size(), truth_.keys.size() + 1) << "h is on the first stack only";
  }
}

TEST_F(CounterExampleTest, TheMemoTellsThemApartToo) {
  for (int i = 0; i < 10; ++i) {
    Stack stacks[2], truths[2];
    const auto look = [&](int which) {
      return [&, which](const CallSite& site) {
        stacks[which] = Joined(site, /*use_memo=*/true);
        truths[which] = Walked(site);
      };
    };
    Visit visits[2] = {{kBytes, look(0)}, {bytes_, look(1)}};
    RootForEach(visits, 2);
    for (int which = 0; which < 2; ++which) EXPECT_EQ(stacks[which], truths[which]);
  }
  EXPECT_GT(ThisThread().memo_hits, 0u);
}

TEST_F(CounterExampleTest, ReturnAddressesAloneDoNot) {
  RunBoth(/*return_addresses_only=*/true);
  ASSERT_EQ(second_.keys.size(), truth_.keys.size() + 1)
      << "the unsound join must find the frame of h that is not there";
  EXPECT_EQ(second_.keys[2], first_.keys[2]) << "and this is h's";
  EXPECT_EQ(truth_checked_, format::CrossCheckResult::kSame);
  EXPECT_EQ(second_checked_, format::CrossCheckResult::kDifferent)
      << "the cross-check must find that frame";
}

}  // namespace
}  // namespace memtrace::unwind
