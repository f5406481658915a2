// What does a stack cost, by depth and by who captures it?
//
//   BM_Walk/depth       Capture() with all rules known: the walk alone. Per frame one
//                       probe, one or two stack words. More than 10 ns a frame: the
//                       rule table misses the cache, or state left the registers.
//   BM_Join/depth       Join() from the same call site: the stack has not changed.
//   BM_JoinLeaf/depth   Join() where only the innermost frames have changed.
//   BM_WalkNew/depth    Capture() with an empty table: the first stack of a program.
//                       The table is cleared outside of the time.
//   BM_Generic/depth    the generic interpreter for every frame: what a stack with a
//                       frame that rsp and rbp cannot leave costs.
//   BM_Libunwind/depth  unw_backtrace(), as heaptrack and others use it.
//   BM_Glibc/depth      backtrace(), which is libgcc's unwinder.
//
// Depth is of the bench's own recursion; a few frames of the harness come on top,
// and the counter "frames" says how many were captured.

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdint>

#include "preload/unwind/cfi_unwinder.h"
#include "preload/unwind/rule_table.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {
namespace {

constexpr size_t kFrames = 256;

StackUnwinder g_unwinder;
StackJoin g_join;
volatile int g_sink;

// What an interposed function knows: its caller.
[[gnu::always_inline]] inline CallSite SiteHere() {
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  return {frame[1], reinterpret_cast<uintptr_t>(frame) + 16, frame[0]};
}

using Work = size_t (*)();

[[gnu::noinline]] size_t Walk() {
  uint64_t keys[kFrames];
  const UnwindResult result = g_unwinder.Capture(SiteHere(), keys, kFrames);
  benchmark::DoNotOptimize(keys[0]);
  return result.frames;
}

[[gnu::noinline]] size_t Join() {
  g_unwinder.Join(SiteHere(), &g_join);
  return g_join.size();
}

[[gnu::noinline]] size_t Libunwind() {
  void* frames[kFrames];
  const int count = unw_backtrace(frames, kFrames);
  benchmark::DoNotOptimize(frames[0]);
  return static_cast<size_t>(count);
}

// By its library: libunwind exports a backtrace() of its own, which would be taken.
int (*const g_glibc_backtrace)(void**, int) = reinterpret_cast<int (*)(void**, int)>(
    dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "backtrace"));

[[gnu::noinline]] size_t Glibc() {
  void* frames[kFrames];
  const int count = g_glibc_backtrace(frames, kFrames);
  benchmark::DoNotOptimize(frames[0]);
  return static_cast<size_t>(count);
}

[[gnu::noinline]] size_t GenericWalk() {
  StackBounds bounds;
  CfiUnwinder walk(CurrentRegisters(), &bounds);
  FrameInfo info;
  size_t frames = 1;
  while (walk.Step(&info) == StepResult::kStepped) ++frames;
  return frames;
}

// Two ways to the same function: what lies inside of them differs.
[[gnu::noinline]] size_t Left(Work work) {
  const size_t frames = work();
  g_sink = 1;
  return frames;
}
[[gnu::noinline]] size_t Right(Work work) {
  const size_t frames = work();
  g_sink = 2;
  return frames;
}

// Runs the loop `depth` frames down, so that only the capture is timed.
template <typename Loop>
[[gnu::noinline]] void Descend(int64_t depth, const Loop& loop) {
  if (depth == 0) {
    loop();
  } else {
    Descend(depth - 1, loop);
  }
  g_sink = g_sink + 1;  // no tail call
}

void Measure(benchmark::State& state, Work work) {
  size_t frames = 0;
  Descend(state.range(0), [&] {
    for (auto _ : state) frames = work();
  });
  state.counters["frames"] = static_cast<double>(frames);
}

void BM_Walk(benchmark::State& state) { Measure(state, Walk); }
void BM_Join(benchmark::State& state) { Measure(state, Join); }
void BM_Generic(benchmark::State& state) { Measure(state, GenericWalk); }
void BM_Libunwind(benchmark::State& state) { Measure(state, Libunwind); }
void BM_Glibc(benchmark::State& state) { Measure(state, Glibc); }

void BM_JoinLeaf(benchmark::State& state) {
  size_t frames = 0;
  Descend(state.range(0), [&] {
    bool left = false;
    for (auto _ : state) {
      left = !left;
      frames = left ? Left(Join) : Right(Join);
    }
  });
  state.counters["frames"] = static_cast<double>(frames);
}

void BM_WalkNew(benchmark::State& state) {
  size_t frames = 0;
  Descend(state.range(0), [&] {
    for (auto _ : state) {
      state.PauseTiming();
      RuleTable::ClearForTesting();
      state.ResumeTiming();
      frames = Walk();
    }
  });
  state.counters["frames"] = static_cast<double>(frames);
}

BENCHMARK(BM_Walk)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK(BM_Join)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK(BM_JoinLeaf)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK(BM_WalkNew)->Arg(5)->Arg(20)->Arg(60)->Iterations(20);
BENCHMARK(BM_Generic)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK(BM_Libunwind)->Arg(5)->Arg(20)->Arg(60);
BENCHMARK(BM_Glibc)->Arg(5)->Arg(20)->Arg(60);

}  // namespace
}  // namespace memtrace::unwind
