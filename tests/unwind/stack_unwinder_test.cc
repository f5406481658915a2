// The walk over frames that are unusual, absent from CFI, or wrong: asm_frames.S.
// For stacks that compilers make see tests/oracle/live_stacks_test.cc.

#include "preload/unwind/stack_unwinder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "preload/arch/arch.h"
#include "preload/unwind/cfi_reader.h"
#include "preload/unwind/rule_table.h"

extern "C" {
using AsmFrame = void(void (*callee)());
AsmFrame FrameWithoutCfi, FrameCyclic, FrameDecreasing, FrameMisaligned, FrameUnreadable,
    FrameUnreadableRbp, FrameFromLostRegister, FrameUnsupported, FrameOutermost, FrameFromRbx,
    FrameReturnInRegister, FrameCfaOnStack, FrameCfaComputed, FrameEndsWithCall,
    FrameSamePcTwice, FrameReturnsNowhere, FrameOfDestructors, FrameOfOlderDestructors,
    FrameOfOldestDestructors, FrameLikeDestructors;
void BareTrampoline();
void TheSamePc();  // a label
extern const char kFiberEnd[], kFiberEndByGot[], kNoFiberEnd[];  // labels
void FrameRbpElsewhere(void (*callee)(), void* area);
void FrameOfOtherStack(void (*callee)(), void* area);
}

namespace memtrace::unwind {
namespace {

using format::StackMarker;

struct Captured {
  UnwindResult result;
  uint64_t keys[kMaxFrames];
  UnwindCounters counters;

  // Does the stack contain a return address into [function, function + bytes)?
  bool Contains(const void* function, size_t bytes = 400) const {
    const auto start = reinterpret_cast<uintptr_t>(function);
    return std::any_of(keys, keys + result.frames,
                       [&](uint64_t key) { return PcOf(key) - 1 - start < bytes; });
  }
};
Captured g_first;   // by CFI
Captured g_second;  // by the rules the first left in the table

[[gnu::noinline]] CallSite SiteOf(void* frame, void* return_address) {
  const auto at = reinterpret_cast<uintptr_t>(frame);
  return {reinterpret_cast<uintptr_t>(return_address), at + 16, *reinterpret_cast<uintptr_t*>(at)};
}
#define MEMTRACE_HERE() SiteOf(__builtin_frame_address(0), __builtin_return_address(0))

#ifdef MEMTRACE_WRITABLE_EH_FRAME
// That the build is what its tests are about.
TEST(WritableEhFrameTest, LiesInAnotherSegmentThanItsTable) {
  dl_find_object object;
  ASSERT_EQ(_dl_find_object(reinterpret_cast<void*>(&SiteOf), &object), 0);
  CfiImage image;
  ASSERT_TRUE(LiveImage(object, &image));
  EXPECT_NE(image.hdr_bytes, 0u);
}
#endif

[[gnu::noinline]] void CaptureHere() {
  const CallSite site = MEMTRACE_HERE();
  for (Captured* captured : {&g_first, &g_second}) {
    StackUnwinder unwinder;
    captured->result = unwinder.Capture(site, captured->keys, kMaxFrames);
    captured->counters = unwinder.counters();
  }
  ASSERT_EQ(g_first.result.frames, g_second.result.frames);
  ASSERT_EQ(g_first.result.marker, g_second.result.marker);
  for (size_t i = 0; i < g_first.result.frames; ++i) ASSERT_EQ(g_first.keys[i], g_second.keys[i]);
}

// The frames a correct walk finds above the asm frame.
[[gnu::noinline]] size_t CallThrough(AsmFrame* frame) {
  CaptureHere();
  const size_t depth = g_first.result.frames;
  EXPECT_EQ(g_first.result.marker, StackMarker::kNone);
  frame(CaptureHere);
  return depth;
}

using WrongFrame = std::pair<AsmFrame*, StackMarker>;
class WrongCfiTest : public testing::TestWithParam<WrongFrame> {};

TEST_P(WrongCfiTest, EndsWithAMarkerBehindTheLastProvenFrame) {
  const auto [frame, marker] = GetParam();
  CallThrough(frame);
  EXPECT_EQ(g_first.result.marker, marker);
  // The frame itself is certain, nothing above it is. Where only rbp is lost, the
  // caller's address is not.
  ASSERT_EQ(g_first.result.frames, frame == FrameUnreadableRbp ? 2u : 1u);
  EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(frame), 64));
  EXPECT_EQ(g_first.counters.marked, 1u);
}

INSTANTIATE_TEST_SUITE_P(Frames, WrongCfiTest,
                         testing::Values(WrongFrame(FrameWithoutCfi, StackMarker::kNoUnwindInfo),
                                         WrongFrame(FrameCyclic, StackMarker::kInconsistent),
                                         WrongFrame(FrameDecreasing, StackMarker::kInconsistent),
                                         WrongFrame(FrameMisaligned, StackMarker::kInconsistent),
                                         WrongFrame(FrameUnreadable, StackMarker::kUnreadable),
                                         WrongFrame(FrameUnreadableRbp, StackMarker::kUnreadable),
                                         WrongFrame(FrameFromLostRegister,
                                                    StackMarker::kUnsupported),
                                         WrongFrame(FrameUnsupported, StackMarker::kUnsupported)),
                         [](const auto& info) { return std::to_string(info.index); });

// As wine's dispatcher of system calls, which the code of a Windows program calls on a stack of its
// own.
TEST(OtherStackTest, OfCodeThatIsOfNoModuleIsNotTakenForADamagedOne) {
  constexpr size_t kBytes = 1 << 20;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const area = static_cast<uintptr_t*>(memory);
  ASSERT_LT(reinterpret_cast<uintptr_t>(area), reinterpret_cast<uintptr_t>(&memory))
      << "this is not the first thread";
  const auto stack = reinterpret_cast<uintptr_t>(area) + kBytes / 2;
  const uintptr_t no_module = reinterpret_cast<uintptr_t>(area) + kBytes / 4;
  for (const auto& [cfa, marker] : {std::pair(stack, StackMarker::kOtherStack),
                                    std::pair(stack + 4, StackMarker::kInconsistent),
                                    std::pair(uintptr_t{8}, StackMarker::kInconsistent)}) {
    area[0] = cfa;
    area[1] = no_module;
    FrameOfOtherStack(CaptureHere, area);
    EXPECT_EQ(g_first.result.marker, marker) << cfa;
    EXPECT_EQ(g_first.result.frames, 1u);
    EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(&FrameOfOtherStack), 64));
  }
  munmap(memory, kBytes);
}

using UnusualFrame = std::pair<AsmFrame*, bool>;  // does it need the generic interpreter?
class UnusualFrameTest : public testing::TestWithParam<UnusualFrame> {};

TEST_P(UnusualFrameTest, IsLeftLikeAnyOther) {
  const auto [frame, generic] = GetParam();
  const size_t depth = CallThrough(frame);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNone);
  EXPECT_EQ(g_first.result.frames, depth + 1) << "one more than from its caller";
  EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(frame), 96));
  EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(&CallThrough)));
  EXPECT_EQ(g_first.counters.generic, generic ? 1u : 0u);
  EXPECT_EQ(g_second.counters.generic, generic ? 1u : 0u);
  EXPECT_EQ(g_second.counters.rule_misses, 0u) << "all of its rules were kept";
}

INSTANTIATE_TEST_SUITE_P(Frames, UnusualFrameTest,
                         testing::Values(UnusualFrame(FrameFromRbx, true),
                                         UnusualFrame(FrameReturnInRegister, true),
                                         UnusualFrame(FrameCfaComputed, true),
                                         UnusualFrame(FrameCfaOnStack, false),
                                         UnusualFrame(FrameEndsWithCall, false)),
                         [](const auto& info) { return std::to_string(info.index); });

[[gnu::noinline]] void CaptureByTheInterpreter() {
  FrameFromRbx(CaptureHere);
  asm volatile("");
}

TEST(StackUnwinderTest, KnowsTheCallOfDestructorsByItsCode) {
  for (AsmFrame* const frame :
       {FrameOfDestructors, FrameOfOlderDestructors, FrameOfOldestDestructors}) {
    const size_t depth = CallThrough(frame);
    EXPECT_EQ(g_first.result.marker, StackMarker::kNone);
    EXPECT_EQ(g_first.result.frames, depth + 2) << "and what it called";
    EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(frame), 96));
    EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(&CallThrough)));
    EXPECT_EQ(g_second.counters.rule_misses, 0u) << "its rule was kept";
    EXPECT_EQ(g_second.counters.generic, 0u);
    const uint64_t outermost = g_first.keys[g_first.result.frames - 1];
    frame(CaptureByTheInterpreter);
    EXPECT_EQ(g_first.result.marker, StackMarker::kNone);
    EXPECT_EQ(g_first.result.frames, depth + 3) << "two more inside, and not CallThrough()";
    EXPECT_EQ(g_first.counters.generic, 1u);
    EXPECT_EQ(g_first.keys[g_first.result.frames - 1], outermost);
  }
  CallThrough(FrameLikeDestructors);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNoUnwindInfo);
  EXPECT_EQ(g_first.result.frames, 2u);
}

TEST(StackUnwinderTest, IsCompleteWhereCfiSaysSo) {
  FrameOutermost(CaptureHere);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNone);
  EXPECT_EQ(g_first.result.frames, 1u);
  EXPECT_EQ(g_first.counters.marked, 0u);
}

TEST(StackUnwinderTest, CountsWhatItDoes) {
  RuleTable::ClearForTesting();
  CaptureHere();
  EXPECT_EQ(g_first.counters.walked, 1u);
  EXPECT_EQ(g_first.counters.rule_misses, g_first.result.frames);
  EXPECT_EQ(g_first.counters.frames, g_first.result.frames);
  EXPECT_EQ(g_second.counters.rule_misses, 0u);
  EXPECT_EQ(g_first.counters.table_full, 0u);
}

volatile int g_sink;

[[gnu::noinline]] int Recurse(int depth) {
  if (depth == 0) {
    CaptureHere();
    return 0;
  }
  const int below = Recurse(depth - 1);
  g_sink = g_sink + 1;  // keeps the recursion from becoming a loop
  return below + 1;
}

TEST(StackUnwinderTest, CutsDeepStacksOnTheOuterSide) {
  ASSERT_EQ(Recurse(40'000), 40'000);
  EXPECT_EQ(g_first.result.frames, kMaxFrames);
  EXPECT_EQ(g_first.result.marker, StackMarker::kTruncated);
  EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(&Recurse)));
}

[[gnu::noinline]] UnwindResult CaptureInto(uint64_t* keys, size_t max) {
  StackUnwinder unwinder;
  return unwinder.Capture(MEMTRACE_HERE(), keys, max);
}

TEST(StackUnwinderTest, WritesNoMoreThanItMay) {
  uint64_t keys[4] = {1, 2, 3, 4};
  UnwindResult result = CaptureInto(keys, 3);
  EXPECT_EQ(result.frames, 3u);
  EXPECT_EQ(result.marker, StackMarker::kTruncated);
  EXPECT_EQ(keys[3], 4u);
  result = CaptureInto(keys, 0);
  EXPECT_EQ(result.frames, 0u);
  EXPECT_EQ(result.marker, StackMarker::kTruncated);
}

void OnSignal(int) { CaptureHere(); }

TEST(StackUnwinderTest, KnowsASignalTrampolineByItsCode) {
  struct KernelAction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  };
  KernelAction action = {OnSignal, 0x04000000 /* SA_RESTORER */, BareTrampoline, 0};
  KernelAction old = {};
  ASSERT_EQ(syscall(SYS_rt_sigaction, SIGUSR2, &action, &old, 8), 0);
  raise(SIGUSR2);
  syscall(SYS_rt_sigaction, SIGUSR2, &old, nullptr, 8);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNone);
  const auto trampoline = reinterpret_cast<uintptr_t>(&BareTrampoline);
  const uint64_t* end = g_first.keys + g_first.result.frames;
  EXPECT_NE(std::find<const uint64_t*>(g_first.keys, end, trampoline + 1), end)
      << "looked up at its own address";
  // Not &raise: in a program at a fixed address that is its own PLT.
  EXPECT_TRUE(g_first.Contains(dlsym(RTLD_NEXT, "raise")));
}

Captured g_by_return;  // of FrameSamePcTwice: called from there, and interrupted there
Captured g_by_signal;

// Both frames have the same address, but one key means the byte before it and the other
// the byte itself; and the two rows of CFI put the frame's end in different places.
TEST(StackUnwinderTest, TheSamePcIsAReturnAddressAndAnInterruptedPc) {
  struct sigaction action = {}, old;
  action.sa_sigaction = [](int, siginfo_t*, void* data) {
    CaptureHere();
    g_by_signal = g_second;
    static_cast<ucontext_t*>(data)->uc_mcontext.gregs[REG_RIP] += 2;  // past ud2
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &old);
  RuleTable::ClearForTesting();
  for (int round = 0; round < 2; ++round) {
    FrameSamePcTwice([] {
      CaptureHere();
      g_by_return = g_second;
    });
    const auto pc = reinterpret_cast<uintptr_t>(&TheSamePc);
    for (const Captured* captured : {&g_by_return, &g_by_signal}) {
      EXPECT_EQ(captured->result.marker, StackMarker::kNone);
      EXPECT_EQ(captured->counters.rule_misses, 0u) << "both rules are kept";
    }
    // Here the callback, PopsItsArguments, FrameSamePcTwice, the test; there the handler,
    // the trampoline, FrameSamePcTwice, the test.
    ASSERT_EQ(g_by_return.result.frames, g_by_signal.result.frames);
    ASSERT_GT(g_by_return.result.frames, 4u);
    EXPECT_EQ(PcOf(g_by_return.keys[2]), pc);
    EXPECT_EQ(PcOf(g_by_signal.keys[2]), pc + 1);
    for (size_t i = 3; i < g_by_signal.result.frames; ++i) {
      EXPECT_EQ(g_by_return.keys[i], g_by_signal.keys[i]);
    }
  }
  sigaction(SIGILL, &old, nullptr);
}

ucontext_t g_outer;
ucontext_t g_inner;

void ContextFunction() { g_sink = Recurse(2); }

TEST(StackUnwinderTest, EndsAtTheBeginOfAContext) {
  std::vector<char> stack(1 << 16);
  getcontext(&g_inner);
  g_inner.uc_stack.ss_sp = stack.data();
  g_inner.uc_stack.ss_size = stack.size();
  g_inner.uc_link = &g_outer;
  makecontext(&g_inner, ContextFunction, 0);
  swapcontext(&g_outer, &g_inner);
  EXPECT_EQ(g_first.result.marker, StackMarker::kContextEnd);
  EXPECT_EQ(g_first.result.frames, 5u);
  EXPECT_TRUE(g_first.Contains(reinterpret_cast<void*>(&ContextFunction), 64));
  EXPECT_EQ(g_first.counters.marked, 0u) << "that is a complete stack";
}

// Fibers of other libraries: what their first function would return to.
void RunFiber(const void* returns_to) {
  std::vector<char> stack(1 << 16);
  auto* top = reinterpret_cast<uintptr_t*>(
      (reinterpret_cast<uintptr_t>(stack.data()) + stack.size() - 64) & ~uintptr_t{15});
  *--top = reinterpret_cast<uintptr_t>(returns_to);
  getcontext(&g_inner);
  g_inner.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(top);
  g_inner.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(+[] {
    ContextFunction();
    setcontext(&g_outer);
  });
  swapcontext(&g_outer, &g_inner);
}

TEST(StackUnwinderTest, KnowsTheEndsOfFibers) {
  for (const char* end : {kFiberEnd, kFiberEndByGot}) {  // of Boost.Context and PHP
    RunFiber(end);
    EXPECT_EQ(g_first.result.marker, StackMarker::kContextEnd);
    ASSERT_EQ(g_first.result.frames, 6u);
    EXPECT_EQ(PcOf(g_first.keys[5]), reinterpret_cast<uintptr_t>(end) + 1);
    EXPECT_EQ(g_first.counters.marked, 0u) << "that is a complete stack";
    EXPECT_EQ(g_second.counters.rule_misses, 0u) << "it is kept";
  }
  RunFiber(nullptr);  // of Ruby
  EXPECT_EQ(g_first.result.marker, StackMarker::kContextEnd);
  EXPECT_EQ(g_first.result.frames, 5u);
  RunFiber(kNoFiberEnd);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNoUnwindInfo);
  EXPECT_EQ(g_first.result.frames, 6u);
}

// A thread's own stack is made by libc, whose CFI says where it ends.
TEST(StackUnwinderTest, NoReturnAddressOnAThreadsStackIsNoEnd) {
  CallThrough(FrameReturnsNowhere);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNoUnwindInfo);
  EXPECT_EQ(g_first.result.frames, 1u);
}

// Code of a module that has none is asked about once, not with every walk.
TEST(StackUnwinderTest, KeepsThatThereIsNoCfi) {
  CallThrough(FrameWithoutCfi);
  EXPECT_EQ(g_first.result.marker, StackMarker::kNoUnwindInfo);
  EXPECT_EQ(g_second.counters.rule_misses, 0u);
}

// What lies above a fiber's stack is not mapped: wrong CFI at its top must not read it.
TEST(StackUnwinderTest, DoesNotReadBeyondAFibersStack) {
  constexpr size_t kBytes = 1 << 16;
  auto* stack = static_cast<char*>(
      mmap(nullptr, kBytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(munmap(stack + kBytes, 4096), 0);
  getcontext(&g_inner);
  g_inner.uc_stack.ss_sp = stack;
  g_inner.uc_stack.ss_size = kBytes;
  g_inner.uc_link = &g_outer;
  makecontext(
      &g_inner, [] { FrameUnreadable(CaptureHere); }, 0);
  swapcontext(&g_outer, &g_inner);
  munmap(stack, kBytes);
  EXPECT_EQ(g_first.result.marker, StackMarker::kUnreadable);
}

// The join keeps what it read, and reads it again: only what stays readable may be kept.
StackUnwinder g_joining;
StackJoin g_join;

[[gnu::noinline]] void JoinHere() {
  const CallSite site = MEMTRACE_HERE();
  const StackJoin::Outcome outcome = g_joining.Join(site, &g_join);
  g_first.result = g_joining.Capture(site, g_first.keys, kMaxFrames);
  if (outcome == StackJoin::Outcome::kGiveUp) return;
  ASSERT_EQ(g_join.size(), g_first.result.frames);
  for (size_t i = 0; i < g_join.size(); ++i) {
    ASSERT_EQ(g_join.key(g_join.size() - 1 - i), g_first.keys[i]);
  }
}

void* g_area;

[[gnu::noinline]] void JoinWithAndWithoutTheArea() {
  for (const int access : {PROT_READ | PROT_WRITE, PROT_NONE, PROT_READ | PROT_WRITE}) {
    mprotect(g_area, 4096, access);
    JoinHere();
    EXPECT_EQ(g_first.result.marker,
              access == PROT_NONE ? StackMarker::kUnreadable : StackMarker::kNone);
  }
}

TEST(StackUnwinderTest, JoinsNothingThatMayBecomeUnreadable) {
  g_area = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FrameRbpElsewhere(JoinWithAndWithoutTheArea, g_area);
  munmap(g_area, 4096);
}

// Two ways into the same frame, without rbp: only the return address tells which one it was.
[[gnu::noinline]] int Deeper(int levels, void (*innermost)()) {
  int below = 0;
  if (levels == 0) {
    innermost();
  } else if (levels % 2 != 0) {
    below = Deeper(levels - 1, innermost);
    asm volatile("" : "+r"(below) : : "memory");
  } else {
    below = Deeper(levels - 1, innermost);
    asm volatile("nop" : "+r"(below) : : "memory");
  }
  return below + 1;
}

// Of many frames that are compared at once one has changed, wherever it is.
TEST(StackUnwinderTest, JoinsSeeOneChangedFrameOfMany) {
  static size_t changed;
  changed = 0;
  Deeper(300, [] {
    JoinHere();
    const uintptr_t pcs[] = {PcOf(g_first.keys[8]), PcOf(g_first.keys[9])};
    ASSERT_EQ(PcOf(g_first.keys[200]), pcs[0]);
    ASSERT_EQ(PcOf(g_first.keys[201]), pcs[1]);
    ASSERT_NE(pcs[0], pcs[1]);
    auto* word = static_cast<volatile uintptr_t*>(__builtin_frame_address(0));
    for (size_t left = 290; left > 0; ++word) {
      const uintptr_t pc = *word;
      if (pc != pcs[0] && pc != pcs[1]) continue;
      --left;
      ++changed;
      *word = pcs[pc == pcs[0]];
      JoinHere();
      *word = pc;
      JoinHere();
      JoinHere();
    }
  });
  EXPECT_EQ(changed, 290u);
}

TEST(StackUnwinderTest, JoinsCountTheirMarkers) {
  const uint64_t before = g_joining.counters().marked;
  JoinHere();
  EXPECT_EQ(g_joining.counters().marked, before);
  // Twice through the join and twice through the walk.
  FrameWithoutCfi([] { JoinHere(), JoinHere(); });
  EXPECT_EQ(g_joining.counters().marked, before + 4);
}

// Runs `body` in a child and returns how that ended.
template <typename Body>
int StatusOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Damages the frames above, and captures.
[[gnu::noinline]] void CaptureOverDamage(unsigned seed) {
  std::mt19937_64 random(seed);
  auto* words = static_cast<uint64_t*>(__builtin_frame_address(0));
  const uint64_t near = reinterpret_cast<uint64_t>(words);
  const auto code = reinterpret_cast<uint64_t>(&CaptureHere);
  for (int i = 0; i < 120; ++i) {
    switch (random() % 6) {
      case 0:
        words[i] = 0x4141414141414141;
        break;
      case 1:
        words[i] = random();
        break;
      case 2:
        words[i] = near + random() % 8192;
        break;
      case 3:
        words[i] = code + random() % 65536 - 32768;
        break;
      case 4:
        words[i] = random() >> 17;
        break;
      default:
        break;
    }
  }
  uint64_t keys[kMaxFrames];
  const UnwindResult result = CaptureInto(keys, kMaxFrames);
  if (result.frames == 0 || result.frames > kMaxFrames) _exit(3);
  _exit(0);
}

TEST(StackUnwinderTest, SurvivesADamagedStack) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    EXPECT_EQ(StatusOfChild([seed] { Recurse(0), CaptureOverDamage(seed); }), 0) << seed;
  }
}

// A storm of signals into a thread that walks its own stack, with the same object:
// both walks must be right.
StackUnwinder g_stormed;
volatile sig_atomic_t g_nested_walks;
volatile sig_atomic_t g_wrong_walks;

[[gnu::noinline]] void CaptureInStorm(StackMarker* marker, size_t* frames) {
  uint64_t keys[kMaxFrames];
  const UnwindResult result = g_stormed.Capture(MEMTRACE_HERE(), keys, kMaxFrames);
  *marker = result.marker;
  *frames = result.frames;
}

void OnStorm(int) {
  StackMarker marker;
  size_t frames;
  CaptureInStorm(&marker, &frames);
  g_nested_walks = g_nested_walks + 1;
  if (marker != StackMarker::kNone) g_wrong_walks = g_wrong_walks + 1;
}

TEST(StackUnwinderTest, CanBeInterruptedByItself) {
  struct sigaction action = {};
  struct sigaction old;
  action.sa_handler = OnStorm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, &old);
  size_t expected;
  StackMarker marker;
  const auto capture = [&](size_t* frames) {
    FrameFromRbx([] { CaptureHere(); }), CaptureInStorm(&marker, frames);
  };
  capture(&expected);
  std::atomic<bool> done{false};
  const pid_t thread = static_cast<pid_t>(syscall(SYS_gettid));
  std::thread sender([&] {
    while (!done) syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
  });
  while (g_nested_walks < 3000) {
    if (g_nested_walks % 64 == 0) RuleTable::ClearForTesting();
    size_t frames;
    capture(&frames);
    ASSERT_EQ(frames, expected);
    ASSERT_EQ(marker, StackMarker::kNone);
    ASSERT_EQ(g_first.result.marker, StackMarker::kNone);
  }
  done = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_EQ(g_wrong_walks, 0);
}

}  // namespace
}  // namespace memtrace::unwind
