// Stacks of moments nobody chose: signals interrupt a thread anywhere, in prologues and
// epilogues, in PLT stubs, in libc's hand-written code, in the walk itself. The handler
// compares our frames with libunwind's.
//
// The handler allocates nothing and asserts nothing; what it found is told afterwards.

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

constexpr size_t kFrames = 128;

struct Difference {
  size_t ours_count;
  size_t theirs_count;
  StackMarker marker;
  uint64_t ours[kFrames];
  uintptr_t theirs[kFrames];
};

StackUnwinder g_unwinder;  // of the main thread, in the handler and out of it
std::atomic<int> g_signals{0};
std::atomic<int> g_differences{0};
Difference g_first_difference;

[[gnu::noinline]] void CompareHere() {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const CallSite site = {reinterpret_cast<uintptr_t>(__builtin_return_address(0)), frame + 16,
                         *reinterpret_cast<uintptr_t*>(frame)};
  uint64_t ours[kFrames];
  const UnwindResult result = g_unwinder.Capture(site, ours, kFrames);

  uintptr_t theirs[kFrames];
  size_t count = 0;
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  bool inside = false;
  do {
    unw_word_t pc;
    unw_word_t sp;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    inside |= pc == site.pc && sp == site.cfa;
    if (inside && pc != 0 && count < kFrames) theirs[count++] = pc;
  } while (unw_step(&cursor) > 0);

  bool same = result.marker == StackMarker::kNone && result.frames == count;
  int past_byte = 0;  // the trampoline and the interrupted frame
  for (size_t i = 0; same && i < count; ++i) {
    const uintptr_t distance = PcOf(ours[i]) - theirs[i];
    past_byte += distance == 1;
    same = distance <= 1;
  }
  same = same && past_byte == 2;
  ++g_signals;
  if (!same && g_differences++ == 0) {
    g_first_difference = {result.frames, count, result.marker, {}, {}};
    memcpy(g_first_difference.ours, ours, result.frames * sizeof(ours[0]));
    memcpy(g_first_difference.theirs, theirs, count * sizeof(theirs[0]));
  }
}

void OnSignal(int) { CompareHere(); }

volatile double g_sink;

[[gnu::noinline]] double Recurse(int depth, double a, double b) {
  if (depth == 0) return sin(a) + pow(b, 1.5);
  double local[8];
  for (double& value : local) value = a += b;
  return Recurse(depth - 1, local[depth % 8], b) + local[(depth + 1) % 8];
}

[[gnu::noinline]] void Work(std::vector<int>* numbers, char* from, char* to, size_t bytes) {
  g_sink = Recurse(10, 1.5, 2.5);
  qsort(numbers->data(), numbers->size(), sizeof(int), [](const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  std::reverse(numbers->begin(), numbers->end());
  memcpy(to, from, bytes);
  memset(from, static_cast<int>(bytes), bytes / 2);
  g_sink = static_cast<double>(strlen(to) + static_cast<size_t>(getppid()) +
                               static_cast<size_t>(strcmp(from, to)));
  g_sink = strtod("1.25e7", nullptr);
  uint64_t keys[kFrames];
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  g_unwinder.Capture({reinterpret_cast<uintptr_t>(__builtin_return_address(0)), frame + 16,
                      *reinterpret_cast<uintptr_t*>(frame)},
                     keys, kFrames);
}

std::string Describe(uintptr_t pc) {
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(pc), &info);
  char text[256];
  snprintf(text, sizeof(text), "%lx %s+0x%lx", pc, info.dli_fname == nullptr ? "?" : info.dli_fname,
           pc - reinterpret_cast<uintptr_t>(info.dli_fbase));
  return text;
}

TEST(SignalStormTest, EqualsLibunwindWhereverItStrikes) {
  CompareHere();  // libunwind sets itself up outside of a handler
  g_signals = 0;
  g_differences = 0;

  struct sigaction action = {};
  struct sigaction old;
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, &old);
  std::atomic<bool> done{false};
  const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  std::thread sender([&] {
    uint32_t random = 1;
    while (!done) {
      syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
      random = random * 1664525 + 1013904223;
      for (volatile uint32_t wait = 0; wait < random >> 18;) {
        const uint32_t next = wait + 1;
        wait = next;
      }
    }
  });
  std::vector<int> numbers(40);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * 7919 % 41);
  std::vector<char> from(3000, 'a');
  std::vector<char> to(3000, 'b');
  from.back() = to.back() = 0;
  constexpr int kSignals = 10'000;
  while (g_signals < kSignals && g_differences == 0) {
    Work(&numbers, from.data(), to.data(), from.size());
  }
  done = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);

  EXPECT_EQ(g_differences, 0) << "of " << g_signals;
  if (g_differences != 0) {
    const Difference& first = g_first_difference;
    std::string story = "marker " + std::to_string(static_cast<int>(first.marker));
    for (size_t i = 0; i < std::max(first.ours_count, first.theirs_count); ++i) {
      story += "\n  ours " + (i < first.ours_count ? Describe(PcOf(first.ours[i])) : "-");
      story += "\n    theirs " + (i < first.theirs_count ? Describe(first.theirs[i]) : "-");
    }
    ADD_FAILURE() << story;
  }
  printf("generic walks: %lu of %lu\n", g_unwinder.counters().generic,
         g_unwinder.counters().generic + g_unwinder.counters().walked);
}

}  // namespace
}  // namespace memtrace::unwind
