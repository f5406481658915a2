/* struck_by_signals MODE SIGNALS [THREADS]: threads that do nothing but allocate, and
 * handlers that allocate, at 10 kHz. They interrupt each other, and everything else.
 * Behind safe_allocator.c: so they may.
 *
 *   storm     three timers for each thread, 10 kHz together, three handlers, one of them on an alternate
 *             stack; blocks go from main to handlers and back. That one of them strikes another is luck:
 *             one in 64 of the first asks for it
 *   jump      every handler that is not below another leaves by siglongjmp()
 *   switch    the handler goes over to another context, three times, and not back
 *   exit      a handler ends the process by exit()
 *   thread_exit  a handler ends its thread by pthread_exit(); many threads, one after another */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "expect.h"

/* kAligned: rounds with aligned blocks, of which safe_allocator.c gives each out once. */
enum { kHandlers = 3, kPassed = 64, kAligned = 1 << 20 };

static long g_wanted;
static _Atomic long g_signals, g_nested;
/* By size: 1001 + handler, 1011 + handler for reallocs, 1020 and more of the threads. */
static _Atomic long g_by_handler[kHandlers];
static _Atomic long g_by_threads;
static _Atomic(void*) g_passed[kPassed];
static _Atomic unsigned g_turn;
static _Thread_local volatile sig_atomic_t t_depth;

static void Pass(void* block) {
  free(atomic_exchange(&g_passed[atomic_fetch_add(&g_turn, 1) % kPassed], block));
}

/* Functions of its own for each handler, so that every size is of its own stacks. */
#define HANDLER(number)                                                     \
  __attribute__((noinline)) static void* Allocates##number(void) {          \
    return malloc(1001 + number);                                           \
  }                                                                         \
  __attribute__((noinline)) static void* Resizes##number(void* block) {     \
    return realloc(block, 1011 + number);                                   \
  }                                                                         \
  __attribute__((noinline)) static void Handle##number(int signal) {        \
    (void)signal;                                                           \
    if (t_depth++ > 0) ++g_nested;                                          \
    void* const block = Allocates##number();                                \
    if (number == 0 && g_by_handler[0] % 64 == 0) raise(SIGUSR2);           \
    Pass(Resizes##number(block));                                           \
    free(Allocates##number());                                              \
    ++g_by_handler[number];                                                 \
    ++g_signals;                                                            \
    --t_depth;                                                              \
  }
HANDLER(0)
HANDLER(1)
HANDLER(2)

__attribute__((noinline)) static void ThreadAllocates(int round) {
  void* blocks[4] = {malloc(1021), calloc(1, 1022), malloc(1023), NULL};
  blocks[0] = realloc(blocks[0], 1024);
  if (round % 64 == 0 && round < kAligned && posix_memalign(&blocks[3], 64, 1025) != 0) _exit(9);
  Pass(blocks[1]);
  free(blocks[0]);
  free(blocks[2]);
  free(blocks[3]);
  ++g_by_threads;
}

__attribute__((noinline)) static void Deeper(int levels, int round) {
  if (levels == 0) {
    ThreadAllocates(round);
  } else {
    Deeper(levels - 1, round);
  }
  __asm__ volatile("");
}

static void Install(void) {
  struct sigaction action = {.sa_handler = Handle0, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = Handle2;
  sigaction(SIGRTMIN, &action, NULL);
  action.sa_handler = Handle1;
  action.sa_flags |= SA_ONSTACK;
  sigaction(SIGUSR2, &action, NULL);
}

static void UseAlternateStack(void) {
  enum { kBytes = 256 << 10 };
  stack_t stack = {.ss_sp = malloc(kBytes), .ss_size = kBytes};
  if (sigaltstack(&stack, NULL) != 0) _exit(8);
}

static timer_t StartTimer(int signal, long every_ns) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) _exit(7);
  const struct itimerspec often = {{0, every_ns}, {0, every_ns}};
  timer_settime(timer, 0, &often, NULL);
  return timer;
}

static void* Struck(void* unused) {
  UseAlternateStack();
  const int signals[kHandlers] = {SIGUSR1, SIGUSR2, SIGRTMIN};
  timer_t timers[kHandlers];
  for (int i = 0; i < kHandlers; ++i) timers[i] = StartTimer(signals[i], 300000);
  for (int round = 0; g_signals < g_wanted; ++round) Deeper(round % 7, round);
  for (int i = 0; i < kHandlers; ++i) timer_delete(timers[i]);
  return unused;
}

static void Storm(int threads) {
  Install();
  pthread_t ids[16];
  for (int i = 1; i < threads; ++i) pthread_create(&ids[i], NULL, Struck, NULL);
  Struck(NULL);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
  Expect(1001, 2 * g_by_handler[0], "Allocates0 Handle0");
  Expect(1002, 2 * g_by_handler[1], "Allocates1 Handle1");
  Expect(1003, 2 * g_by_handler[2], "Allocates2 Handle2");
  Expect(1011, g_by_handler[0], "Resizes0 Handle0");
  Expect(1012, g_by_handler[1], "Resizes1 Handle1");
  Expect(1013, g_by_handler[2], "Resizes2 Handle2");
  Expect(1021, g_by_threads, "ThreadAllocates Deeper");
  Expect(1022, g_by_threads, "ThreadAllocates Deeper");
  Expect(1023, g_by_threads, "ThreadAllocates Deeper");
  Expect(1024, g_by_threads, "ThreadAllocates Deeper");
  Tell("nested %ld\n", (long)g_nested);
}

/* --- jump --------------------------------------------------------------------- */

static sigjmp_buf g_back;

__attribute__((noinline)) static void HandleAndJump(int signal) {
  (void)signal;
  free(malloc(1031));
  ++g_signals;
  siglongjmp(g_back, 1);
}

__attribute__((noinline)) static void AllocatesAfterwards(void) {
  for (int i = 0; i < 100000; ++i) free(malloc(1032));
  __asm__ volatile("");
}

static void Jump(void) {
  struct sigaction action = {.sa_handler = HandleAndJump};
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  volatile int round = 0;
  timer_t timer = StartTimer(SIGUSR1, 100000);
  sigsetjmp(g_back, 1);
  while (g_signals < g_wanted) Deeper(round++ % 7, 1);
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigaction(SIGUSR1, &ignore, NULL);
  timer_delete(timer);
  AllocatesAfterwards();
  Expect(1032, 100000, "AllocatesAfterwards");
}

/* --- switch ------------------------------------------------------------------- */

enum { kContexts = 4 };
static ucontext_t g_contexts[kContexts];
static volatile sig_atomic_t g_running;

__attribute__((noinline)) static void HandleAndSwitch(int signal) {
  (void)signal;
  free(malloc(1041));
  const int from = g_running;
  if (++g_signals < (from + 1) * g_wanted / kContexts || from + 1 == kContexts) return;
  g_running = from + 1;
  swapcontext(&g_contexts[from], &g_contexts[from + 1]);
}

static void NextContext(void) {
  for (int round = 0; g_signals < g_wanted; ++round) Deeper(round % 5, 1);
  Tell("context %d\nsignals %ld\n", (int)g_running, (long)g_signals);
  exit(0);
}

static void Switch(void) {
  enum { kBytes = 256 << 10 };
  for (int i = 1; i < kContexts; ++i) {
    getcontext(&g_contexts[i]);
    g_contexts[i].uc_stack.ss_sp = malloc(kBytes);
    g_contexts[i].uc_stack.ss_size = kBytes;
    makecontext(&g_contexts[i], NextContext, 0);
  }
  struct sigaction action = {.sa_handler = HandleAndSwitch};
  sigaction(SIGUSR1, &action, NULL);
  StartTimer(SIGUSR1, 100000);
  for (int round = 0;; ++round) Deeper(round % 7, 1);
}

/* --- exit, thread_exit ---------------------------------------------------------- */

static void AtExit(void) { free(malloc(1051)); }

__attribute__((noinline)) static void HandleAndExit(int signal) {
  (void)signal;
  if (++g_signals < g_wanted) {
    free(malloc(1052));
    return;
  }
  atexit(AtExit);
  exit(42);
}

static void ExitInHandler(void) {
  struct sigaction action = {.sa_handler = HandleAndExit};
  sigaction(SIGUSR1, &action, NULL);
  StartTimer(SIGUSR1, 100000);
  for (int round = 0;; ++round) Deeper(round % 7, 1);
}

static pthread_key_t g_key;

static void LastOfThread(void* block) {
  free(block);
  free(malloc(1061));
}

__attribute__((noinline)) static void HandleAndExitThread(int signal) {
  (void)signal;
  free(malloc(1062));
  ++g_signals;
  pthread_exit(NULL);
}

static void* RunsUntilStruck(void* unused) {
  pthread_setspecific(g_key, malloc(1063));
  StartTimer(SIGUSR1, 30000);
  for (int round = 0;; ++round) Deeper(round % 7, 1);
  return unused;
}

static void ExitThreads(void) {
  pthread_key_create(&g_key, LastOfThread);
  struct sigaction action = {.sa_handler = HandleAndExitThread};
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  for (long i = 0; i < g_wanted; ++i) {
    pthread_t id;
    if (pthread_create(&id, NULL, RunsUntilStruck, NULL) != 0) _exit(6);
    pthread_join(id, NULL);
  }
  Expect(1061, g_wanted, "LastOfThread");
  Expect(1062, g_wanted, "HandleAndExitThread");
  Expect(1063, g_wanted, "RunsUntilStruck");
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  g_wanted = atol(argv[2]);
  const int threads = argc > 3 ? atoi(argv[3]) : 1;
  Deeper(0, 0); /* the counting shim finds what it calls by dlsym(), under the loader's lock */
  if (strcmp(argv[1], "storm") == 0) Storm(threads);
  else if (strcmp(argv[1], "jump") == 0) Jump();
  else if (strcmp(argv[1], "switch") == 0) Switch();
  else if (strcmp(argv[1], "exit") == 0) ExitInHandler();
  else if (strcmp(argv[1], "thread_exit") == 0) ExitThreads();
  else return 2;
  Tell("signals %ld\n", (long)g_signals);
  return 0;
}
