// Stacks at every single instruction: the processor's trap flag stops a thread before
// each one, and the handler takes the stack there. So every prologue and epilogue of the
// corpus is met in every state, every PLT stub, and the whole of ld.so's lazy binding.
//
// The oracle is the processor: a call is seen by what it does to the stack, and the return
// addresses that were pushed and not yet popped are the frames. No CFI, no other unwinder;
// libunwind is wrong at some of these points (docs/stack-capture.md).

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "preload/unwind/stack_unwinder.h"
#include "tests/oracle/shapes/shapes.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

constexpr size_t kFrames = 256;
constexpr size_t kStories = 3;

struct Stack {
  uint64_t keys[kFrames];
  size_t frames = 0;
  StackMarker marker = StackMarker::kNone;
};

StackUnwinder g_unwinder;
Stack g_base;  // from the caller of Step() outwards; then come Step() and StepThrough()
uintptr_t g_step;

// The calls that were made and not left, outermost first.
struct Call {
  uintptr_t slot;
  uintptr_t return_address;
};
Call g_calls[kFrames];
size_t g_depth;
uintptr_t g_last_pc, g_last_sp;

size_t g_steps, g_jumps, g_faults;
uintptr_t g_pcs[1 << 16];
struct Story {
  Stack ours;
  uintptr_t pc;
  Call calls[kFrames];
  size_t depth;
} g_stories[kStories];

[[gnu::noinline]] CallSite SiteOf(void* frame, void* return_address) {
  const auto at = reinterpret_cast<uintptr_t>(frame);
  return {reinterpret_cast<uintptr_t>(return_address), at + 16, *reinterpret_cast<uintptr_t*>(at)};
}
#define MEMTRACE_HERE() SiteOf(__builtin_frame_address(0), __builtin_return_address(0))

// What the instruction before this one did to the stack of calls.
void FollowCalls(uintptr_t pc, uintptr_t sp) {
  while (g_depth > 0 && g_calls[g_depth - 1].slot < sp) --g_depth;
  uintptr_t top;
  memcpy(&top, reinterpret_cast<const void*>(sp), sizeof(top));
  const bool called = g_steps > 0 && sp == g_last_sp - 8 && top - g_last_pc >= 2 &&
                      top - g_last_pc <= 9 && pc != top;
  if (called && g_depth < kFrames) g_calls[g_depth++] = {sp, top};
  g_last_pc = pc;
  g_last_sp = sp;
}

bool IsRight(uintptr_t pc, const Stack& ours) {
  const size_t outer = g_base.frames;
  if (ours.marker != StackMarker::kNone || ours.frames != outer + g_depth + 3) return false;
  // The trampoline, where the signal struck, the calls since.
  if (PcOf(ours.keys[1]) != pc + 1) return false;
  for (size_t i = 0; i < g_depth; ++i) {
    if (PcOf(ours.keys[2 + i]) != g_calls[g_depth - 1 - i].return_address) return false;
  }
  return PcOf(ours.keys[2 + g_depth]) - g_step < 4000 &&
         memcmp(ours.keys + 3 + g_depth, g_base.keys, outer * sizeof(uint64_t)) == 0;
}

// Where longjmp() has loaded the target's registers, its CFI tells the target's frames.
bool IsInLongjmp(uintptr_t pc) {
  static const auto entry = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "longjmp"));
  return pc - entry < 0x100;
}

void OnStep(int, siginfo_t*, void* data) {
  const gregset_t& registers = static_cast<ucontext_t*>(data)->uc_mcontext.gregs;
  const auto pc = static_cast<uintptr_t>(registers[REG_RIP]);
  FollowCalls(pc, static_cast<uintptr_t>(registers[REG_RSP]));
  static Stack ours;
  const UnwindResult result = g_unwinder.Capture(MEMTRACE_HERE(), ours.keys, kFrames);
  ours.frames = result.frames;
  ours.marker = result.marker;
  if (g_steps < std::size(g_pcs)) g_pcs[g_steps] = pc;
  ++g_steps;
  if (IsRight(pc, ours)) return;
  if (IsInLongjmp(pc) && ours.marker == StackMarker::kNone && ours.frames > g_base.frames &&
      memcmp(ours.keys + ours.frames - g_base.frames, g_base.keys,
             g_base.frames * sizeof(uint64_t)) == 0) {
    ++g_jumps;
    return;
  }
  if (g_faults++ < kStories) {
    Story& story = g_stories[g_faults - 1];
    story.ours = ours;
    story.pc = pc;
    story.depth = g_depth;
    memcpy(story.calls, g_calls, sizeof(g_calls));
  }
}

// The first popf sets the flag, the other clears it: the trap comes after the nop, and then
// after every instruction. Not over a red zone: this function calls.
[[gnu::noinline]] void StepThrough(void (*function)()) {
  asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tnop" ::: "cc", "memory");
  function();
  asm volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc", "memory");
}

[[gnu::noinline]] void NoteBase() {
  const UnwindResult result = g_unwinder.Capture(MEMTRACE_HERE(), g_base.keys, kFrames);
  g_base.frames = result.frames;
  g_base.marker = result.marker;
}

std::string Describe(uintptr_t pc) {
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(pc), &info);
  char text[300];
  snprintf(text, sizeof(text), "%lx %s (%s+0x%lx)", pc,
           info.dli_sname == nullptr ? "?" : info.dli_sname,
           info.dli_fname == nullptr ? "?" : info.dli_fname,
           pc - reinterpret_cast<uintptr_t>(info.dli_fbase));
  return text;
}

// Runs `function` step by step, and tells what was wrong.
[[gnu::noinline]] void Step(void (*function)()) {
  dlsym(RTLD_DEFAULT, "longjmp");
  IsInLongjmp(0);
  g_steps = g_faults = g_jumps = g_depth = 0;
  g_step = reinterpret_cast<uintptr_t>(&Step);
  struct sigaction action = {}, old;
  action.sa_sigaction = OnStep;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &old);
  NoteBase();
  std::copy(g_base.keys + 1, g_base.keys + g_base.frames, g_base.keys);  // without this one
  --g_base.frames;
  StepThrough(function);
  sigaction(SIGTRAP, &old, nullptr);
  ASSERT_EQ(g_base.marker, StackMarker::kNone);
  for (size_t i = 0; i < std::min(g_faults, kStories); ++i) {
    const Story& story = g_stories[i];
    std::string text =
        "at " + Describe(story.pc) + ", marker " + std::to_string(int(story.ours.marker));
    for (size_t f = 0; f < story.ours.frames; ++f) {
      text += "\n  ours " + Describe(PcOf(story.ours.keys[f]));
    }
    for (size_t f = story.depth; f > 0; --f) {
      text += "\n  called " + Describe(story.calls[f - 1].return_address);
    }
    ADD_FAILURE() << text;
  }
  EXPECT_EQ(g_faults, 0u) << "of " << g_steps << " instructions";
}

// How many of the instructions that were stepped lie in [begin, begin + bytes).
size_t StepsIn(uintptr_t begin, size_t bytes) {
  const size_t steps = std::min(g_steps, std::size(g_pcs));
  return static_cast<size_t>(
      std::count_if(g_pcs, g_pcs + steps, [&](uintptr_t pc) { return pc - begin < bytes; }));
}

class SteppedCodeTest : public testing::TestWithParam<const char*> {};

TEST_P(SteppedCodeTest, HasTheRightStackAtEveryInstruction) {
  const std::string path =
      std::string(MEMTRACE_BUILD_DIR "/tests/shapes/libstepped_") + GetParam() + ".so";
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* run = reinterpret_cast<void (*)()>(dlsym(library, "RunStepped"));
  ASSERT_NE(run, nullptr);
  Step(run);  // the first time every call through the PLT binds
  EXPECT_GT(g_steps, 3000u);
  EXPECT_LE(g_jumps, 16u);
  const size_t first = g_steps;
  Step(run);
  EXPECT_GT(g_steps, 500u);
  EXPECT_LE(g_jumps, 16u);
  EXPECT_GT(first, 2 * g_steps) << "nothing was bound lazily";
}

INSTANTIATE_TEST_SUITE_P(Builds, SteppedCodeTest, testing::Values(MEMTRACE_STEPPED),
                         [](const auto& info) { return std::string(info.param); });

RunShapesFunction* g_run_shapes;

// Below an IFUNC's resolver, itself below _dl_runtime_resolve: the CFA comes from rbx.
TEST(LazyBindingTest, HasTheRightStackAtEveryInstruction) {
  void* library =
      dlopen(MEMTRACE_BUILD_DIR "/tests/shapes/libshapes_lazy_caller.so", RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  g_run_shapes = reinterpret_cast<RunShapesFunction*>(dlsym(library, "RunShapes"));
  ASSERT_NE(g_run_shapes, nullptr);
  const uint64_t generic = g_unwinder.counters().generic;
  Step([] { g_run_shapes([](const char*) {}); });
  EXPECT_GT(g_unwinder.counters().generic - generic, 500u) << "below _dl_runtime_resolve";
  // The stub that was stepped through lies in the caller's own PLT, before its .text.
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(g_run_shapes), &info), 0);
  const auto base = reinterpret_cast<uintptr_t>(info.dli_fbase);
  const size_t plt = StepsIn(base, reinterpret_cast<uintptr_t>(g_run_shapes) - base);
  EXPECT_GE(plt, 3u) << "endbr64, push, jmp and those of the first entry";
}

}  // namespace
}  // namespace memtrace::unwind
