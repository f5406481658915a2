// The shapes that need no help: see shapes.h. Built many times over.

#include "tests/oracle/shapes/shapes.h"

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

Probe g_probe;
volatile int g_sink;

[[gnu::noinline]] void Use(const volatile void* data) {
  g_sink = g_sink + *static_cast<const volatile char*>(data);
}

// Deep recursion, with and without a tail position.
[[gnu::noinline]] int Recurse(int depth, const char* name) {
  if (depth == 0) {
    g_probe(name);
    return 1;
  }
  return Recurse(depth - 1, name) + g_sink;
}

// Six live values across a call: all callee-saved registers are in use.
[[gnu::noinline]] long ManyRegisters(long a, long b, long c, long d, long e, long f, int depth) {
  if (depth == 0) {
    g_probe("many_registers");
  } else {
    g_sink = static_cast<int>(ManyRegisters(f, a, b, c, d, e, depth - 1));
  }
  return a * 3 + b * 5 + c * 7 + d * 11 + e * 13 + f * 17;
}

[[gnu::noinline]] void Alloca(size_t bytes) {
  char* block = static_cast<char*>(alloca(bytes));
  memset(block, 1, bytes);
  g_probe("alloca");
  Use(block);
}

[[gnu::noinline]] void VariableLengthArray(int n) {
  __extension__ char block[n];
  memset(block, 1, static_cast<size_t>(n));
  if (n > 200) VariableLengthArray(n / 2);
  g_probe("vla");
  Use(block);
}

// Over-aligned locals: the compiler realigns the stack, gcc by way of a DRAP
// register where the arguments are on the stack or the frame is dynamic.
[[gnu::noinline]] void Realigned(int depth, long a, long b, long c, long d, long e, long f,
                                 long on_stack) {
  alignas(64) char block[128];
  memset(block, static_cast<int>(on_stack), sizeof(block));
  char* dynamic = static_cast<char*>(alloca(static_cast<size_t>(16 + depth)));
  dynamic[0] = block[1];
  if (depth > 0) {
    Realigned(depth - 1, b, c, d, e, f, a, on_stack + 1);
  } else {
    g_probe("realigned");
  }
  Use(block);
  Use(dynamic);
}

[[gnu::noinline]] void RealignedPlain() {
  alignas(128) double block[32];
  for (int i = 0; i < 32; ++i) block[i] = g_sink + i;
  g_probe("realigned_plain");
  Use(block);
}

[[gnu::noinline]] void HugeFrame() {
  volatile char block[900 * 1024];
  block[0] = 1;
  block[sizeof(block) - 1] = 2;
  g_probe("huge_frame");
  Use(block);
}

struct Shape {
  virtual ~Shape() = default;
  virtual void Visit(int depth) = 0;
};
struct Circle : Shape {
  void Visit(int depth) override {
    if (depth == 0) return g_probe("virtual");
    next->Visit(depth - 1);
    g_sink = g_sink + 1;
  }
  Shape* next = this;
};

void Lambdas() {
  std::function<void(int)> call = [&](int depth) {
    if (depth == 0) {
      g_probe("lambda");
    } else {
      call(depth - 1);
    }
    g_sink = g_sink + depth;
  };
  call(5);
}

int CompareThroughLibc(const void* a, const void* b) {
  static int calls = 0;
  if (++calls == 5) g_probe("qsort");
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void ThroughLibc() {
  int values[] = {5, 3, 9, 1, 7, 2, 8};
  qsort(values, 7, sizeof(int), CompareThroughLibc);
  const int key = 7;
  bsearch(&key, values, 7, sizeof(int), [](const void* a, const void* b) {
    g_probe("bsearch");
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void*) {
        g_probe("dl_iterate_phdr");
        return 1;
      },
      nullptr);
  pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { g_probe("pthread_once"); });
  std::vector<int> numbers = {4, 2, 3};
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
    g_probe("std_sort");
    return a < b;
  });
}

struct Witness {
  const char* name;
  ~Witness() { g_probe(name); }
};

[[gnu::noinline]] void Throw(int depth) {
  Witness witness{"destructor_while_unwinding"};
  if (depth == 0) throw std::runtime_error("thrown");
  Throw(depth - 1);
  Use(&witness);
}

void Exceptions() {
  try {
    Throw(3);
  } catch (const std::exception& error) {
    g_probe("catch");
    try {
      Throw(1);
    } catch (...) {
      g_probe("nested_catch");
    }
    Use(error.what());
  }
}

void OnSignal(int) { g_probe("signal_handler"); }

void OnNestedSignal(int number) {
  if (number == SIGUSR1) raise(SIGUSR2);
  g_probe("nested_signal");
}

[[gnu::noinline]] void RaiseUnder(int depth, int number) {
  if (depth == 0) {
    raise(number);
  } else {
    RaiseUnder(depth - 1, number);
  }
  g_sink = g_sink + 1;
}

void Signals() {
  struct sigaction action = {};
  struct sigaction old[2];
  action.sa_handler = OnSignal;
  sigaction(SIGUSR1, &action, &old[0]);
  RaiseUnder(3, SIGUSR1);

  std::vector<char> memory(1 << 16);
  stack_t own = {};
  own.ss_sp = memory.data();
  own.ss_size = memory.size();
  stack_t before;
  sigaltstack(&own, &before);
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void*) { g_probe("sigaltstack"); };
  sigaction(SIGUSR1, &action, nullptr);
  RaiseUnder(3, SIGUSR1);
  sigaltstack(&before, nullptr);

  action = {};
  action.sa_handler = OnNestedSignal;
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGUSR2, &action, &old[1]);
  RaiseUnder(2, SIGUSR1);

  // A fault interrupts an instruction in the middle of a function, no call. The
  // handler makes the page readable, so that the instruction succeeds at last.
  static char* page;
  page = static_cast<char*>(
      mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  action = {};
  action.sa_handler = [](int) {
    g_probe("fault");
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
  };
  struct sigaction old_segv;
  sigaction(SIGSEGV, &action, &old_segv);
  Use(page);
  mprotect(page, 4096, PROT_NONE);
  memset(page, 1, 64);  // in libc's hand-written code
  mprotect(page, 4096, PROT_NONE);
  qsort(page, 100, 4, [](const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  sigaction(SIGSEGV, &old_segv, nullptr);
  munmap(page, 4096);
  sigaction(SIGUSR1, &old[0], nullptr);
  sigaction(SIGUSR2, &old[1], nullptr);
}

ucontext_t g_main_context;
ucontext_t g_fiber_context;

void Fiber() { Recurse(4, "context"); }

void SwitchingFiber() {
  Recurse(2, "context_switched");
  swapcontext(&g_fiber_context, &g_main_context);
  Recurse(3, "context_switched");
}

void Contexts() {
  std::vector<char> stack(1 << 16);
  for (void (*entry)() : {Fiber, SwitchingFiber}) {
    getcontext(&g_fiber_context);
    g_fiber_context.uc_stack.ss_sp = stack.data();
    g_fiber_context.uc_stack.ss_size = stack.size();
    g_fiber_context.uc_link = &g_main_context;
    makecontext(&g_fiber_context, entry, 0);
    swapcontext(&g_main_context, &g_fiber_context);
    if (entry == SwitchingFiber) swapcontext(&g_main_context, &g_fiber_context);
  }
}

void Threads() {
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        Recurse(3, "pthread");
        return nullptr;
      },
      nullptr);
  pthread_join(thread, nullptr);
  std::thread([] {
    thread_local Witness witness{"tls_destructor"};
    Use(&witness);
    Recurse(2, "std_thread");
    Signals();
  }).join();
}

// A call that does not return is the last instruction: its return address is
// that of the next function.
[[gnu::noinline, noreturn]] void LeavesByThrowing(const char* name) {
  g_probe(name);
  throw 1;
}
[[gnu::noinline, noreturn]] void EndsWithCall() { LeavesByThrowing("noreturn_call"); }
[[gnu::noinline]] void FollowsEndsWithCall() { g_sink = g_sink + 2; }

void Noreturn() {
  try {
    EndsWithCall();
  } catch (int) {
    FollowsEndsWithCall();
  }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void RunShapes(Probe probe) {
  g_probe = probe;
  Recurse(0, "leaf");
  Recurse(40, "recursion");
  ManyRegisters(1, 2, 3, 4, 5, 6, 4);
  Alloca(100);
  Alloca(10000);
  VariableLengthArray(1000);
  Realigned(3, 1, 2, 3, 4, 5, 6, 7);
  RealignedPlain();
  HugeFrame();
  Circle circle;
  static_cast<Shape*>(&circle)->Visit(4);
  Lambdas();
  ThroughLibc();
  Exceptions();
  Signals();
  Contexts();
  Threads();
  Noreturn();
}
