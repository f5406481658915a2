// Stacks that are left by longjmp() instead of returns, and that threads switch between:
// fibers of makecontext(), on the heap, inside the thread's own stack, unmapped and mapped
// again. Nothing tells the tracer of any of it.
//
// The functions below note where they will return to, so that every stack is known exactly.

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "tests/unwind/every_way.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

using Chain = std::vector<uintptr_t>;  // return addresses, outermost first

thread_local EveryWay* t_ways;
thread_local Chain* t_chain;               // of the stack the thread is on
thread_local const CapturedStack* t_base;  // what is outside of the chain; null: a fiber
volatile int g_sink;

// Notes the caller, and forgets it when the function returns or is unwound.
class Noted {
 public:
  explicit Noted(void* return_address) : chain_(t_chain), depth_(chain_->size()) {
    chain_->push_back(reinterpret_cast<uintptr_t>(return_address));
  }
  ~Noted() { chain_->resize(depth_); }

 private:
  Chain* chain_;
  size_t depth_;
};

[[gnu::noinline]] CapturedStack CaptureCaller() { return t_ways->Capture(MEMTRACE_CALLER_SITE()); }

// The stack here must be the chain, and then what was there before it.
[[gnu::noinline]] void Check() {
  const CapturedStack stack = t_ways->Capture(MEMTRACE_CALLER_SITE());
  const Chain& chain = *t_chain;
  const size_t outer = t_base != nullptr ? t_base->keys.size() - 1 : 1;
  ASSERT_EQ(stack.keys.size(), 1 + chain.size() + outer);
  for (size_t i = 0; i < chain.size(); ++i) {
    ASSERT_EQ(PcOf(stack.keys[1 + i]), chain[chain.size() - 1 - i]);
  }
  if (t_base == nullptr) {
    ASSERT_EQ(stack.marker, StackMarker::kContextEnd);
    return;
  }
  ASSERT_EQ(stack.marker, StackMarker::kNone);
  for (size_t i = 0; i < outer; ++i) {
    ASSERT_EQ(stack.keys[1 + chain.size() + i], t_base->keys[1 + i]);
  }
}

#define NOTE_CALL() const Noted noted(__builtin_return_address(0))

struct Walk {
  std::mt19937 random;
  std::function<void(Walk&)> at_leaf;  // may not come back
};
void Deeper(Walk& walk, int depth);

[[gnu::noinline]] void Small(Walk& walk, int depth) {
  NOTE_CALL();
  Deeper(walk, depth);
  g_sink = g_sink + 1;
}
[[gnu::noinline]] void Variable(Walk& walk, int depth) {
  NOTE_CALL();
  auto* block = static_cast<volatile char*>(__builtin_alloca(16 + walk.random() % 9 * 16));
  block[0] = 1;
  Deeper(walk, depth);
  g_sink = g_sink + block[0];
}
[[gnu::noinline]] void Deeper(Walk& walk, int depth) {
  NOTE_CALL();
  Check();
  if (testing::Test::HasFatalFailure()) return;
  if (depth == 0) {
    walk.at_leaf(walk);
  } else {
    (walk.random() % 2 == 0 ? Small : Variable)(walk, depth - 1);
    Check();
  }
  g_sink = g_sink + 1;
}

class SwitchedStacksTest : public testing::Test {
 protected:
  void SetUp() override {
    t_ways = &ways_;
    t_chain = &chain_;
    t_base = nullptr;
  }
  EveryWay ways_;
  Chain chain_;
  int round_ = 0;  // here, where longjmp leaves it alone
};

// --- longjmp ----------------------------------------------------------------

jmp_buf g_jump;
sigjmp_buf g_signal_jump;

TEST_F(SwitchedStacksTest, LongjmpOverFrames) {
  const CapturedStack base = CaptureCaller();
  t_base = &base;
  Walk walk;
  walk.random.seed(1);
  int jumps = 0;
  walk.at_leaf = [&](Walk& w) {
    if (w.random() % 2 == 0) return;
    ++jumps;
    longjmp(g_jump, 1);
  };
  for (round_ = 0; round_ < 400 && !HasFatalFailure(); ++round_) {
    if (setjmp(g_jump) == 0) Deeper(walk, static_cast<int>(walk.random() % 12));
    chain_.clear();  // what was jumped over forgets nothing
  }
  EXPECT_GT(jumps, 100);
  EXPECT_GT(ways_.joined_frames(), 1000u);
}

TEST_F(SwitchedStacksTest, SiglongjmpOutOfAHandlerOnAnotherStack) {
  std::vector<char> memory(1 << 16);
  stack_t own = {}, before;
  own.ss_sp = memory.data();
  own.ss_size = memory.size();
  sigaltstack(&own, &before);
  struct sigaction action = {}, old;
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = [](int) {
    CaptureCaller();  // on the other stack, through a signal frame
    siglongjmp(g_signal_jump, 1);
  };
  sigaction(SIGUSR1, &action, &old);
  const CapturedStack base = CaptureCaller();
  t_base = &base;
  Walk walk;
  walk.random.seed(2);
  walk.at_leaf = [](Walk&) { raise(SIGUSR1); };
  for (round_ = 0; round_ < 200 && !HasFatalFailure(); ++round_) {
    if (sigsetjmp(g_signal_jump, 1) == 0) {
      Deeper(walk, static_cast<int>(walk.random() % 8));
      ADD_FAILURE() << "came back";
    }
    chain_.clear();
  }
  sigaction(SIGUSR1, &old, nullptr);
  sigaltstack(&before, nullptr);
}

// --- Fibers -----------------------------------------------------------------

struct Fiber {
  ucontext_t context;
  Chain chain;
  Walk walk;
  size_t skip = 0;  // bytes of its stack to leave free above the walk
  bool done = false;
};
ucontext_t g_main;
Fiber* g_running;

// The fiber's own code; it switches back at every leaf. Its chain begins with the frame
// that is below __start_context.
[[gnu::noinline]] void FiberMain() {
  auto* skipped = static_cast<volatile char*>(__builtin_alloca(g_running->skip + 16));
  skipped[0] = 1;
  for (int i = 0; i < 30; ++i) {
    Deeper(g_running->walk, static_cast<int>(g_running->walk.random() % 6));
  }
  g_running->done = true;
  g_sink = g_sink + skipped[0];
}

void MakeFiber(Fiber* fiber, void* stack, size_t bytes, unsigned seed) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = stack;
  fiber->context.uc_stack.ss_size = bytes;
  fiber->context.uc_link = &g_main;
  fiber->walk.random.seed(seed);
  fiber->walk.at_leaf = [fiber](Walk&) { swapcontext(&fiber->context, &g_main); };
  makecontext(&fiber->context, FiberMain, 0);
}

void SwitchTo(Fiber* fiber) {
  g_running = fiber;
  Chain* const chain = t_chain;
  const CapturedStack* const base = t_base;
  t_chain = &fiber->chain;
  t_base = nullptr;
  swapcontext(&g_main, &fiber->context);
  t_chain = chain;
  t_base = base;
}

// Fibers by turns, and stacks of the thread itself in between.
[[gnu::noinline]] void RunFibers(std::vector<Fiber>& fibers, unsigned seed) {
  std::mt19937 random(seed);
  const CapturedStack base = CaptureCaller();
  t_base = &base;
  Walk walk;
  walk.random.seed(seed);
  walk.at_leaf = [](Walk&) {};
  size_t left = fibers.size();
  while (left > 0 && !testing::Test::HasFatalFailure()) {
    Fiber& fiber = fibers[random() % fibers.size()];
    if (fiber.done) continue;
    SwitchTo(&fiber);
    left -= fiber.done;
    Deeper(walk, static_cast<int>(random() % 4));
  }
  t_base = nullptr;
}

TEST_F(SwitchedStacksTest, FibersOnTheHeap) {
  std::vector<Fiber> fibers(8);
  std::vector<std::vector<char>> stacks(8, std::vector<char>(1 << 17));
  for (unsigned i = 0; i < 8; ++i) MakeFiber(&fibers[i], stacks[i].data(), stacks[i].size(), i);
  RunFibers(fibers, 3);
  EXPECT_GT(ways_.give_ups(), 100u) << "nothing of them is kept";
}

// Their frames are in the range that counts as the thread's own, so they are kept too.
TEST_F(SwitchedStacksTest, FibersInsideTheThreadsStack) {
  constexpr size_t kBytes = 1 << 17;
  char stacks[4][kBytes];
  std::vector<Fiber> fibers(4);
  for (unsigned i = 0; i < 4; ++i) MakeFiber(&fibers[i], stacks[i], kBytes, 10 + i);
  RunFibers(fibers, 4);
  EXPECT_EQ(ways_.give_ups(), 0u);
  EXPECT_GT(ways_.joined_frames(), 100u);
}

constexpr size_t kAreaBytes = 1 << 19;

// A stack is unmapped, and mapped again with less above it: a stack that is remembered from
// before must not be read beyond the new end, though it begins at the same address with the
// same frames.
void RunOnStacksThatShrink(char* area, size_t bytes) {
  for (size_t top : {bytes, bytes / 2, bytes, bytes / 4, bytes / 2, bytes}) {
    ASSERT_EQ(munmap(area, bytes), 0);
    void* const got = mmap(area, top, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(got, area);
    std::vector<Fiber> fibers(1);
    MakeFiber(&fibers[0], area, top, 20);
    fibers[0].skip = top - bytes / 4;  // the walk is at the same place each time
    RunFibers(fibers, 5);
  }
}

TEST_F(SwitchedStacksTest, FibersWhoseStackIsUnmappedAndMappedSmaller) {
  auto* area = static_cast<char*>(
      mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  RunOnStacksThatShrink(area, kAreaBytes);
  munmap(area, kAreaBytes);
}

// Four stacks that begin alike and differ in one word far up, where they are called from.
struct Ways {
  size_t skip = 0;
  int way = 0;
} g_ways;

[[gnu::noinline]] void FarBelow() {
  auto* skipped = static_cast<volatile char*>(__builtin_alloca(g_ways.skip + 16));
  skipped[0] = 1;
  for (volatile int i = 0; i < 3;) {
    CaptureCaller();
    const int next = i + 1;
    i = next;
  }
  g_sink = g_sink + skipped[0];
}
template <int kWay>
[[gnu::noinline]] void Way() {
  FarBelow();
  g_sink = kWay;
}
void TakeTheWay() {
  constexpr void (*kWays[])() = {Way<0>, Way<1>, Way<2>, Way<3>};
  kWays[g_ways.way]();
  g_sink = g_sink + 1;
}
void RunWay(char* area, size_t bytes, size_t skip, int way) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = area;
  context.uc_stack.ss_size = bytes;
  context.uc_link = &g_main;
  g_ways = {skip, way};
  makecontext(&context, TakeTheWay, 0);
  swapcontext(&g_main, &context);
}

// The word that tells them apart is unmapped: no way to the stack may look at it.
void DifferFarUpAndLoseIt(char* area) {
  for (int i = 0; i < 24; ++i) RunWay(area, kAreaBytes, kAreaBytes / 2, i % 4);
  ASSERT_EQ(munmap(area + kAreaBytes / 2, kAreaBytes / 2), 0);
  RunWay(area, kAreaBytes / 2, 0, 0);
}

// The same where the fibers' memory touches the thread's stack from below, with no guard
// between: where that stack begins the thread's descriptor says.
void RunDirectlyBelowAStack(void (*run)(char* area)) {
  constexpr size_t kStackBytes = 1 << 20;
  auto* memory = static_cast<char*>(mmap(nullptr, kAreaBytes + kStackBytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory + kAreaBytes, kStackBytes), 0);
  struct Argument {
    void (*run)(char*);
    char* area;
  } argument = {run, memory};
  pthread_t thread;
  const auto body = [](void* data) -> void* {
    const auto* what = static_cast<const Argument*>(data);
    EveryWay ways;
    Chain chain;
    t_ways = &ways;
    t_chain = &chain;
    t_base = nullptr;
    what->run(what->area);
    EXPECT_GT(ways.give_ups(), 20u) << "nothing of them is kept: they are not the thread's own";
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &argument), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(memory, kAreaBytes + kStackBytes);
}

TEST_F(SwitchedStacksTest, FibersDirectlyBelowAStackWithoutAGuard) {
  RunDirectlyBelowAStack([](char* area) { RunOnStacksThatShrink(area, kAreaBytes); });
}

TEST_F(SwitchedStacksTest, FibersThatDifferInAWordThatGoesAway) {
  RunDirectlyBelowAStack(DifferFarUpAndLoseIt);
}

}  // namespace
}  // namespace memtrace::unwind
