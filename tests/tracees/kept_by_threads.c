// Cases of kept_by: what threads keep, on their stacks, in their registers and as their signal stacks,
// and what the scan's stop does to them.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memtrace.h"
#include "tests/tracees/kept_by.h"

static void* KeepInTls(void* unused) {
  (void)unused;
  in_tls = Block("reachable");
  CleanStack();
  g_ready++;
  for (;;) pause();
  return NULL;
}

static void* KeepWithSignalsBlocked(void* unused) {
  sigset_t all;
  (void)unused;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  void* volatile kept = Block("reachable");
  g_ready++;
  for (;;) sleep(1000);
  return kept;
}

// Waits for any signal: one of ours must not be taken for the program's.
static void* WaitForAnySignal(void* unused) {
  sigset_t all;
  (void)unused;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  void* volatile kept = Block("reachable");
  g_ready++;
  for (;;) {
    siginfo_t info;
    const int got = sigwaitinfo(&all, &info);
    printf("unexpected signal %d\n", got);
    fflush(stdout);
  }
  return kept;
}

// The kernel alone knows where it is.
static NOINLINE void TakeSignalStack(void) {
  stack_t stack = {.ss_size = 64 << 10};
  stack.ss_size += g_next++;
  Expect(stack.ss_size, "reachable");
  stack.ss_sp = malloc(stack.ss_size);
  sigaltstack(&stack, NULL);
}

static void* HaveSignalStack(void* unused) {
  (void)unused;
  TakeSignalStack();
  CleanStack();
  __atomic_fetch_add(&g_ready, 1, __ATOMIC_RELAXED);
  for (;;) pause();
  return NULL;
}

static void OnSignalStack(int signal) {
  void* volatile kept = Block("reachable");
  (void)signal;
  g_ready++;
  for (;;) sleep(1000);
  free(kept);
}

static void* KeepOnSignalStack(void* unused) {
  (void)unused;
  stack_t stack = {.ss_size = 64 << 10};
  stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = OnSignalStack, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return NULL;
}

static NOINLINE void LeaveDeepInStack(void) {
  volatile char frame[16 << 10];
  frame[0] = 0;
  void* volatile left = Block("definite");
  (void)left;
  (void)frame;
}

static void* LeaveOnStack(void* unused) {
  (void)unused;
  LeaveDeepInStack();
  return NULL;
}

static void* ReturnBlock(void* unused) {
  (void)unused;
  return Block("reachable");
}

// No call between the loss and the wait but the last.
static void* LoseAndWait(void* unused) {
  (void)unused;
  Expect(4999, "definite");
  CleanStack();
  void* volatile block = malloc(4999);
  block = NULL;
  (void)block;
  __atomic_fetch_add(&g_ready, 1, __ATOMIC_RELAXED);
  pause();
  return NULL;
}

static void* EndAtOnce(void* unused) { return unused; }

static void* MakeThreads(void* unused) {
  (void)unused;
  while (!g_stop) {
    pthread_join(Start(EndAtOnce), NULL);
    free(malloc(100));
  }
  return NULL;
}

static volatile long g_alarms;

static void OnAlarm(int signal) {
  (void)signal;
  ++g_alarms;
}

static volatile int g_children;

static void OnChild(int signal) {
  (void)signal;
  ++g_children;
}

static void* WaitForChildren(void* unused) {
  (void)unused;
  while (!g_stop) {
    int status;
    const pid_t child = wait(&status);
    if (child > 0) printf("unexpected child\n");
    if (child < 0 && errno != ECHILD && errno != EINTR) printf("unexpected error\n");
    usleep(200);
  }
  return NULL;
}

static void AlarmOften(void) {
  struct sigaction action = {.sa_handler = OnAlarm, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
}

static void Scan(int wait, int must) {
  const long number = memtrace_leak_check("test", MEMTRACE_LEAKS_ANY, wait);
  if (must && number <= 0) printf("unexpected result %ld\n", number);
}

static int OtherThreads(void) {
  Start(KeepOnStack);
  Start(KeepInTls);
  WaitFor(&g_ready, 2);
  Lose();
  return 0;
}

static int Register(void) {
  StartWithRegister();
  Lose();
  return 0;
}

static int SignalsBlocked(void) {
  Start(KeepWithSignalsBlocked);
  Start(WaitForAnySignal);
  WaitFor(&g_ready, 2);
  usleep(20000);
  Lose();
  return 0;
}

static int SignalStack(void) {
  Start(KeepOnSignalStack);
  WaitFor(&g_ready, 1);
  Lose();
  return 0;
}

static int KeptSignalStacks(void) {
  Start(HaveSignalStack);
  WaitFor(&g_ready, 1);
  TakeSignalStack();
  CleanStack();
  Lose();
  return 0;
}

// With its memory in use again.
static int FreedSignalStack(void) {
  stack_t stack = {.ss_size = 64 << 10};
  stack.ss_sp = malloc(stack.ss_size);
  sigaltstack(&stack, NULL);
  free(stack.ss_sp);
  Expect(60000, "reachable");
  void** const again = in_bss = calloc(1, 60000);
  const size_t bytes = g_next++;
  for (int i = 0; i < 10; ++i) {
    Expect(bytes, "reachable");
    again[100 * i] = calloc(1, bytes);
  }
  Lose();
  return 0;
}

static int EndedThreads(void) {
  pthread_join(Start(LeaveOnStack), NULL);
  Start(ReturnBlock);  // joined by nobody
  usleep(50000);
  return 0;
}

struct Returned {
  const char* kind;
  int depth;  // each has a stack of its own, and so a record
};

static __attribute__((noinline)) void* ReturnFrom(int depth, const char* kind) {
  void* const block = depth > 0 ? ReturnFrom(depth - 1, kind) : Block(kind);
  __asm__ volatile("");  // no jump takes the place of the call
  return block;
}

static void* Return(void* what) {
  const struct Returned* const returned = what;
  return ReturnFrom(returned->depth, returned->kind);
}

// What a thread returned is wanted until it is joined; of one that was detached it is not. On
// stacks of libc's and of the program's own.
static int ReturnedBlocks(void) {
  const size_t bytes = 64 * kPage;
  char* const stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(stack, kPage, PROT_NONE);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, bytes);
  static struct Returned returned[] = {
      {"definite", 1}, {"definite", 2}, {"definite", 3}, {"reachable", 4}, {"definite", 5}};
  if (pthread_create(&thread, &attributes, Return, &returned[4]) != 0) return 77;
  pthread_join(thread, NULL);
  for (int i = 0; i < 4; ++i) {
    if (pthread_create(&thread, NULL, Return, &returned[i]) != 0) return 77;
    if (i == 0) pthread_join(thread, NULL);
    if (i == 1) pthread_detach(thread);
    usleep(50000);
    if (i == 2) pthread_detach(thread);  // it has ended
  }
  return 0;
}

// Stacks as glibc 2.42 makes them: one mapping of several.
static int GuardRegions(void) {
  const size_t bytes = 64 * kPage;
  char* const stacks = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks + i * bytes, bytes);
    if (madvise(stacks + i * bytes, kPage, 102 /* MADV_GUARD_INSTALL */) != 0) return 77;
    if (pthread_create(&threads[i], &attributes, i == 0 ? LeaveOnStack : KeepOnStack, NULL) != 0) return 77;
  }
  pthread_join(threads[0], NULL);
  WaitFor(&g_ready, 1);
  return 0;
}

static int HundredThreads(void) {
  for (int i = 0; i < 100; ++i) Start(KeepOnStack);
  WaitFor(&g_ready, 100);
  return 0;
}

static int StaleBelow(void) {
  // The calls before are those of malloc, which leave the block's address behind.
  for (int i = 0; i < 10; ++i) Start(LoseAndWait);
  WaitFor(&g_ready, 10);
  usleep(50000);
  return 0;
}

static int WaitLoop(void) {
  signal(SIGCHLD, OnChild);
  Start(WaitForChildren);
  in_bss = Block("reachable");
  Lose();
  for (int i = 0; i < 20; ++i) Scan(i % 2, i % 2);
  g_stop = 1;
  if (g_children != 0) printf("unexpected SIGCHLD\n");
  return 0;
}

static int Storm(void) {
  AlarmOften();
  Start(KeepOnStack);
  Start(KeepInTls);
  WaitFor(&g_ready, 2);
  for (int i = 0; i < 10; ++i) Scan(1, 1);
  Lose();
  return 0;
}

static int Churn(void) {
  for (int i = 0; i < 4; ++i) Start(MakeThreads);
  in_bss = Block("reachable");
  Lose();
  for (int i = 0; i < 200; ++i) Scan(1, 1);
  return 0;
}

// Each waits for its own, while the others see it end and begin theirs.
static void* ScanAgainAndAgain(void* unused) {
  for (int i = 0; i < 40; ++i) Scan(1, 1);
  return unused;
}
static int ScannedByMany(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) threads[i] = Start(ScanAgainAndAgain);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  in_bss = Block("reachable");
  Lose();
  return 0;
}

// Below 1 TiB a pointer has the form of a size: the bounds of a stack there are found all the same,
// and nothing below the stack is given up.
static int LowStacks(void) {
  enum { kStackBytes = 256 << 10 };
  char* const memory = mmap(NULL, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (memory == MAP_FAILED) return 77;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory + kPage, kStackBytes);
  pthread_create(&thread, &attributes, KeepOnStack, NULL);
  pthread_attr_destroy(&attributes);
  WaitFor(&g_ready, 1);
  void** const below = (void**)memory;
  below[7] = Block("reachable");
  Lose();
  CleanStack();
  return 0;
}

const struct Case kThreadsCases[] = {
    {"threads", OtherThreads},
    {"register", Register},
    {"signals_blocked", SignalsBlocked},
    {"signal_stack", SignalStack},
    {"kept_signal_stacks", KeptSignalStacks},
    {"freed_signal_stack", FreedSignalStack},
    {"ended_threads", EndedThreads},
    {"returned_blocks", ReturnedBlocks},
    {"guard_regions", GuardRegions},
    {"low_stacks", LowStacks},
    {"hundred_threads", HundredThreads},
    {"stale_below", StaleBelow},
    {"wait_loop", WaitLoop},
    {"storm", Storm},
    {"churn", Churn},
    {"scanned_by_many", ScannedByMany},
    {NULL, NULL},
};
