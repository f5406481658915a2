// A block, and what keeps it, if anything does: kept_by CASE. Says "expect SIZE KIND" of each block
// that matters, by memcheck's kinds; their sizes are their own. Ends by exit() unless the case says
// otherwise. Status 77: this machine does not let it.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memtrace.h"
#include "tests/tracees/spin_with_register.h"

#define NOINLINE __attribute__((noinline))
enum { kPage = 4096 };

static size_t g_next = 5001;
static void* volatile in_data = &g_next;  // a writable word that is initialised
static void* volatile in_bss;
static _Thread_local void* volatile in_tls;
static volatile int g_ready, g_stop;
enum { kLargeBss = 20000 };
static void* volatile g_large_bss[kLargeBss];
static void* volatile g_kept_in_child[61];
extern char end[];  // of the .bss

static void Expect(size_t size, const char* kind) { printf("expect %zu %s\n", size, kind); }

// A block of a size of its own, of which no word but the result is left on the stack.
static NOINLINE void* Block(const char* kind) {
  const size_t size = g_next++;
  Expect(size, kind);
  void* block = malloc(size);
  memset(block, 0, size);
  return block;
}

static NOINLINE void CleanStack(void) {
  volatile char frames[32 << 10];
  for (size_t i = 0; i < sizeof(frames); ++i) frames[i] = 0;
}

// Leaves old words where a signal's frame will be, but for the red zone of what is called next.
static NOINLINE void LeaveBelow(uintptr_t hidden) {
  volatile uintptr_t words[2048];
  uintptr_t word = ~hidden;
  for (size_t i = 0; i < 2048 - 64; ++i) words[i] = word;
  (void)words;
  asm volatile("xor %0, %0" : "+r"(word));  // it is in no register
}

static void WaitFor(volatile int* flag, int value) {
  while (*flag < value) usleep(1000);
}

// Past every library.
static void RawUnmap(void* address, size_t bytes) {
#ifdef __x86_64__
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"((long)SYS_munmap), "D"(address), "S"(bytes)
               : "rcx", "r11", "memory");
#else
  munmap(address, bytes);
#endif
}

// Is `address` in the mapping that is called [heap]?
static int HeapHas(const char* address) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  int has = 0;
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    char *rest, *begin = (char*)strtoul(line, &rest, 16), *behind = (char*)strtoul(rest + 1, &rest, 16);
    has |= strstr(rest, "[heap]") != NULL && begin <= address && address < behind;
  }
  if (maps != NULL) fclose(maps);
  return has;
}

// To what there is and 24 MiB.
static void LimitAddressSpace(int for_good) {
  FILE* const statm = fopen("/proc/self/statm", "r");
  unsigned long pages;
  if (statm == NULL || fscanf(statm, "%lu", &pages) != 1) exit(77);
  fclose(statm);
  struct rlimit limit = {0, 0};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * kPage + (24 << 20);
  if (for_good) limit.rlim_max = limit.rlim_cur;
  if (setrlimit(RLIMIT_AS, &limit) != 0) exit(77);
}

static void Lose(void) {
  void* volatile block = Block("definite");
  block = NULL;
  (void)block;
}

static pthread_t Start(void* (*function)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, NULL) != 0) exit(77);
  return thread;
}

// --- Threads ----------------------------------------------------------------

static void* KeepOnStack(void* unused) {
  void* volatile kept = Block("reachable");
  (void)unused;
  g_ready++;
  while (!g_stop) pause();
  free(kept);
  return NULL;
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

static void* KeepInTls(void* unused) {
  (void)unused;
  in_tls = Block("reachable");
  CleanStack();
  g_ready++;
  for (;;) pause();
  return NULL;
}

static NOINLINE uintptr_t Hidden(void) { return ~(uintptr_t)Block("reachable"); }
static NOINLINE uintptr_t HiddenLost(void) { return ~(uintptr_t)Block("definite"); }
static void* KeepInRegister(void* unused) {
  (void)unused;
  const uintptr_t hidden = Hidden();
  CleanStack();
  SpinWithRegister(hidden);
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

// Of blocks with free chunks beside them, in an arena that has to grow.
static NOINLINE void LoseBesideFreeChunks(void) {
  static void *between[60];
  for (int i = 0; i < 60; ++i) {
    void* volatile lost = malloc(408);
    memset(lost, 0, 408);
    lost = NULL;
    (void)lost;
    between[i] = malloc(3000);
    g_kept_in_child[i] = malloc(1200);
  }
  for (int i = 0; i < 60; ++i) free(between[i]);
  memset(between, 0, sizeof(between));
  g_kept_in_child[60] = malloc(60000);
}
static void* ForkAndLose(void* unused) {
  (void)unused;
  free(malloc(10));
  const pid_t child = fork();
  if (child == 0) {
    LoseBesideFreeChunks();
    CleanStack();
    _exit(0);
  }
  waitpid(child, NULL, 0);
  printf("child %d\n", child);
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
static void* EndAtOnce(void* unused) { return unused; }
static void* Churn(void* unused) {
  (void)unused;
  while (!g_stop) {
    pthread_join(Start(EndAtOnce), NULL);
    free(malloc(100));
  }
  return NULL;
}

// Its blocks are mappings that come and go.
static void* ChurnWithSignalsBlocked(void* unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  for (;;) {
    char* const block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    free(block);
    g_ready = 1;
  }
  return unused;
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

static void Storm(void) {
  struct sigaction action = {.sa_handler = OnAlarm, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
}

static void Scan(int wait, int must) {
  const long number = memtrace_leak_check("test", MEMTRACE_LEAKS_ANY, wait);
  if (must && number <= 0) printf("unexpected result %ld\n", number);
}

static void ForbidNothing(void) {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {1, &allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    exit(77);
  }
}

static void CountStop(int signal_number) {
  (void)signal_number;
  g_stop++;
}

static NOINLINE int Run(const char* name) {
#define CASE(text) if (strcmp(name, text) == 0)
  CASE("globals") {
    in_data = Block("reachable");
    in_bss = Block("reachable");
    in_tls = Block("reachable");
    Lose();
    return 0;
  }
  CASE("threads") {
    Start(KeepOnStack);
    Start(KeepInTls);
    WaitFor(&g_ready, 2);
    Lose();
    return 0;
  }
  CASE("register") {
    Start(KeepInRegister);
    WaitFor(&g_spins, 1);
    Lose();
    return 0;
  }
  CASE("signals_blocked") {
    Start(KeepWithSignalsBlocked);
    Start(WaitForAnySignal);
    WaitFor(&g_ready, 2);
    usleep(20000);
    Lose();
    return 0;
  }
  CASE("signal_stack") {
    Start(KeepOnSignalStack);
    WaitFor(&g_ready, 1);
    Lose();
    return 0;
  }
  CASE("ended_threads") {
    pthread_join(Start(LeaveOnStack), NULL);
    Start(ReturnBlock);  // joined by nobody
    usleep(50000);
    return 0;
  }
  CASE("guard_regions") {  // stacks as glibc 2.42 makes them: one mapping of several
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
  CASE("mappings") {
    void** anonymous = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    anonymous[7] = Block("reachable");
    void** shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[9] = Block("reachable");
    FILE* const file = tmpfile();
    if (file == NULL || ftruncate(fileno(file), kPage) != 0) return 77;
    void** private = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    private[11] = Block("reachable");  // and three pages behind it that nobody can read
    void** of_file = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    of_file[13] = Block("reachable");
    Lose();
    return 0;
  }
  CASE("sparse") {
    const size_t bytes = (size_t)64 << 30;
    char* const sparse = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sparse == MAP_FAILED) return 77;
    *(void**)(sparse + bytes / 2) = Block("reachable");
    Lose();
    return 0;
  }
  CASE("sparse_shared") {
    const size_t bytes = (size_t)256 << 30;
    const int file = memfd_create("sparse", 0);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return 77;
    char* const sparse = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (sparse == MAP_FAILED) return 77;
    *(void**)sparse = Block("reachable");
    *(void**)(sparse + bytes / 2 + 5 * kPage) = Block("reachable");
    *(void**)(sparse + bytes - kPage) = Block("reachable");
    Lose();
    char path[80];
    snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)sparse, (unsigned long)(sparse + bytes));
    return open(path, O_RDONLY) >= 0 ? 0 : 77;
  }
  CASE("own_heap") {  // as of a garbage collector: full of pointers into itself
    const size_t count = (16 << 20) / sizeof(void*);
    void** const heap = mmap(NULL, count * sizeof(void*), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < count; ++i) heap[i] = &heap[count - 1 - i];
    heap[count / 2] = Block("reachable");
    Lose();
    return 0;
  }
  CASE("freed_heap") {  // most of it, full of pointers; what is left is a list through all of it
    enum { kBlocks = 200000, kEvery = 200, kBytes = 5000 };
    void** const blocks = malloc(kBlocks * sizeof(void*));
    void** last = NULL;
    for (size_t i = 0; i < kBlocks; ++i) {
      const size_t bytes = i % kEvery == 0 ? kBytes : 200 + i * 7919 % 1000 * (i % 50 == 0);
      blocks[i] = malloc(bytes);
      for (size_t k = 0; k < bytes / sizeof(void*); ++k) {
        ((void**)blocks[i])[k] = i > 0 ? blocks[i - 1] : NULL;
      }
    }
    for (size_t i = 0; i < kBlocks; ++i) {
      if (i % kEvery != 0) {
        free(blocks[i]);
        continue;
      }
      Expect(kBytes, "reachable");
      memset(blocks[i], 0, kBytes);
      *(void**)blocks[i] = last;
      last = blocks[i];
    }
    memset(blocks, 0, kBlocks * sizeof(void*));
    free(blocks);
    in_bss = last;
    Lose();
    return 0;
  }
  CASE("own_break") {  // memory of the program's own amid libc's heap, and blocks behind it
    in_bss = Block("reachable");
    free(malloc(100000));
    char* const own = sbrk(1 << 20);
    if (own == (char*)-1) return 77;
    memset(own, 0x21, 1 << 20);
    void** at = in_bss;
    const size_t bytes = g_next++;
    for (int i = 0; i < 500; ++i) {
      Expect(bytes, "reachable");
      at = *at = calloc(1, bytes);
      free(malloc(3000));
    }
    Lose();
    return 0;
  }
  CASE("heap_behind_bss") {  // and in one mapping with it, which is called [heap]
    char* const last = (char*)((uintptr_t)(end - 1) & -(uintptr_t)kPage);
    g_large_bss[100] = Block("reachable");
    g_large_bss[kLargeBss - kPage / sizeof(void*)] = Block("reachable");
    // Changed and changed back, a page may be one with what is behind it.
    if (mprotect(last, kPage, PROT_READ) != 0 || mprotect(last, kPage, PROT_READ | PROT_WRITE) != 0) return 77;
    free(malloc(100000));
    Lose();
    return HeapHas(last) ? 0 : 77;
  }
  CASE("mapped_before") {  // by the program, where libc has a block now
    const size_t bytes = 8 << 20, size = bytes - 8 * kPage, small = g_next++;
    static void** volatile keep[3];
    for (int i = 0; i < 3; ++i) {
      char* const old =
          mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (i == 0) munmap(old, bytes);
      if (i == 1) RawUnmap(old, bytes);
      if (i == 2) mremap(old, bytes, 4 * bytes, MREMAP_MAYMOVE);
      Expect(size, "reachable");
      keep[i] = malloc(size);
      if ((char*)keep[i] > old + bytes || (char*)keep[i] < old) printf("elsewhere\n");
      Expect(small, "reachable");
      keep[i][size / 16] = calloc(1, small);
    }
    Lose();
    return 0;
  }
  CASE("guard_pages") {
    char* const pages =
        mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + kPage, kPage, PROT_NONE);
    *(void**)pages = Block("reachable");
    *(void**)(pages + 2 * kPage) = Block("reachable");
    // Within a block, as a stack of a coroutine has one.
    Expect(5 * kPage, "reachable");
    char* const block = in_bss = aligned_alloc(kPage, 5 * kPage);
    *(void**)block = Block("reachable");
    *(void**)(block + 4 * kPage) = Block("reachable");
    mprotect(block + 2 * kPage, kPage, PROT_NONE);
    Lose();
    return 0;
  }
  CASE("read_only") {
    // Protected when it was filled: what a global variable points to, and what that leads to.
    Expect(3 * kPage + 8, "reachable");
    char* const block = in_bss = aligned_alloc(kPage, 3 * kPage + 8);
    *(void**)block = Block("reachable");
    *(void**)(block + 2 * kPage) = Block("reachable");
    mprotect(block, 2 * kPage, PROT_READ);
    mprotect(block + 2 * kPage, kPage, PROT_READ | PROT_EXEC);
    Expect(1 << 20, "reachable");
    char* const large = in_data = malloc(1 << 20);
    *(void**)(large + 3 * kPage) = Block("reachable");
    mprotect(large + 3 * kPage - 16, 9 * kPage, PROT_READ);
    // Nobody points to this one: that it cannot be written makes it no root.
    Expect(5 * kPage + 8, "definite");
    char* volatile lost = aligned_alloc(kPage, 5 * kPage + 8);
    *(void**)lost = Block("indirect");
    mprotect(lost, kPage, PROT_READ);
    lost = NULL;
    // Of the program's own memory as much is a root as it says.
    char* const pages =
        mmap(NULL, 256 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(void**)pages = Block("reachable");
    *(void**)(pages + 8) = Block("definite");
    *(void**)(pages + 100 * kPage) = Block("definite");
    mprotect(pages, 256 * kPage, PROT_READ);
    memtrace_root_region(pages, 8);
    return 0;
  }
  CASE("stale_below") {
    // The calls before are those of malloc, which leave the block's address behind.
    for (int i = 0; i < 10; ++i) Start(LoseAndWait);
    WaitFor(&g_ready, 10);
    usleep(50000);
    return 0;
  }
  CASE("wait_loop") {
    signal(SIGCHLD, OnChild);
    Start(WaitForChildren);
    in_bss = Block("reachable");
    Lose();
    for (int i = 0; i < 20; ++i) Scan(i % 2, i % 2);
    g_stop = 1;
    if (g_children != 0) printf("unexpected SIGCHLD\n");
    return 0;
  }
  CASE("storm") {
    Storm();
    Start(KeepOnStack);
    Start(KeepInTls);
    WaitFor(&g_ready, 2);
    for (int i = 0; i < 10; ++i) Scan(1, 1);
    Lose();
    return 0;
  }
  CASE("churn") {
    for (int i = 0; i < 4; ++i) Start(Churn);
    in_bss = Block("reachable");
    Lose();
    for (int i = 0; i < 10; ++i) Scan(1, 1);
    return 0;
  }
  CASE("fork") {
    Start(KeepOnStack);
    WaitFor(&g_ready, 1);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      printf("child\n");
      Lose();
      in_bss = Block("reachable");
      fflush(stdout);
      _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
  }
  CASE("no_process") {
    const struct rlimit none = {0, 0};
    in_bss = Block("reachable");
    Start(KeepOnStack);
    WaitFor(&g_ready, 1);
    Lose();
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
    return 0;
  }
  CASE("busy_alone") {  // no process can be made, and a thread cannot be stopped
    const struct rlimit none = {0, 0};
    Start(ChurnWithSignalsBlocked);
    WaitFor(&g_ready, 1);
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
    return 0;
  }
  CASE("tight") {  // little address space, for good
    LimitAddressSpace(1);
    in_bss = Block("reachable");
    Lose();
    return 0;
  }
  CASE("tight_until_raised") {
    LimitAddressSpace(0);
    in_bss = Block("reachable");
    Lose();
    return 0;
  }
  CASE("kept_signal_stacks") {
    Start(HaveSignalStack);
    WaitFor(&g_ready, 1);
    TakeSignalStack();
    CleanStack();
    Lose();
    return 0;
  }
  CASE("usable_size") {  // behind what was asked for
    char* const block = in_bss = Block("reachable");
    const size_t usable = malloc_usable_size(block);
    if (usable / 8 == (g_next - 1) / 8) return 77;
    ((void**)block)[usable / 8 - 1] = Block("reachable");
    CleanStack();
    Lose();
    return 0;
  }
  CASE("forks_from_a_thread") {
    pthread_join(Start(ForkAndLose), NULL);
    return 0;
  }
  CASE("io_uring") {
    struct { unsigned of_sizes[2], flags, processor, idle, rest[35]; } parameters = {.flags = 2, .idle = 100};
    if (syscall(425 /* io_uring_setup */, 4, &parameters) < 0) return 77;
    Lose();
    return 0;
  }
  CASE("freed_signal_stack") {  // with its memory in use again
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
  CASE("seccomp") {
    Lose();
    ForbidNothing();
    return 0;
  }
  CASE("asked_before_a_filter") {
    signal(SIGUSR1, CountStop);
    Start(KeepInRegister);
    WaitFor(&g_spins, 1);
    Lose();
    printf("ready\n");
    fflush(stdout);
    WaitFor(&g_stop, 1);
    ForbidNothing();
    printf("filtered\n");
    fflush(stdout);
    for (;;) pause();
  }
  CASE("chroot") {
    in_bss = Block("reachable");
    Lose();
    if (chroot("/usr") != 0) return 77;
    return 0;
  }
  CASE("_exit") {
    in_bss = Block("reachable");
    Lose();
    fflush(stdout);
    _exit(3);
  }
  CASE("hundred_threads") {
    for (int i = 0; i < 100; ++i) Start(KeepOnStack);
    WaitFor(&g_ready, 100);
    return 0;
  }
  CASE("talks") {  // until it is told to end
    in_bss = Block("reachable");
    Lose();
    CleanStack();
    printf("ready\n");
    fflush(stdout);
    for (;;) {
      free(malloc(100));
      usleep(500);
    }
  }
  CASE("idle") {
    in_bss = Block("reachable");
    Lose();
    const uintptr_t hidden = HiddenLost();
    CleanStack();
    printf("ready\n");
    fflush(stdout);
    for (;;) {
      LeaveBelow(hidden);
      pause();
    }
  }
  return 2;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 4096);
  const int status = Run(argv[1]);
  CleanStack();
  fflush(stdout);
  exit(status);
}
