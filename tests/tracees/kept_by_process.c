// Cases of kept_by: processes that fork, that may not do what a scan wants to, and that go on.

#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracees/kept_by.h"

static void* volatile g_kept_in_child[61];

static NOINLINE uintptr_t HiddenLost(void) { return ~(uintptr_t)Block("definite"); }

// Leaves old words where a signal's frame will be, but for the red zone of what is called next.
static NOINLINE void LeaveBelow(uintptr_t hidden) {
  volatile uintptr_t words[2048];
  uintptr_t word = ~hidden;
  for (size_t i = 0; i < 2048 - 64; ++i) words[i] = word;
  (void)words;
  asm volatile("xor %0, %0" : "+r"(word));  // it is in no register
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

static int Fork(void) {
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

static int ForksFromAThread(void) {
  pthread_join(Start(ForkAndLose), NULL);
  return 0;
}

static int NoProcess(void) {
  const struct rlimit none = {0, 0};
  in_bss = Block("reachable");
  Start(KeepOnStack);
  WaitFor(&g_ready, 1);
  Lose();
  if (geteuid() == 0 && setuid(65534) != 0) return 77;
  if (setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
  return 0;
}

// No process can be made, and a thread cannot be stopped.
static int BusyAlone(void) {
  const struct rlimit none = {0, 0};
  Start(ChurnWithSignalsBlocked);
  WaitFor(&g_ready, 1);
  if (geteuid() == 0 && setuid(65534) != 0) return 77;
  if (setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
  return 0;
}

// Little address space, for good.
static int Tight(void) {
  LimitAddressSpace(1);
  in_bss = Block("reachable");
  Lose();
  return 0;
}

static int TightUntilRaised(void) {
  LimitAddressSpace(0);
  in_bss = Block("reachable");
  Lose();
  return 0;
}

static int IoUring(void) {
  struct { unsigned of_sizes[2], flags, processor, idle, rest[35]; } parameters = {.flags = 2, .idle = 100};
  if (syscall(425 /* io_uring_setup */, 4, &parameters) < 0) return 77;
  Lose();
  return 0;
}

static int Seccomp(void) {
  Lose();
  ForbidNothing();
  return 0;
}

static int AskedBeforeAFilter(void) {
  signal(SIGUSR1, CountStop);
  StartWithRegister();
  Lose();
  CleanStack();
  // printf() would write the registers that may have arguments to the stack, one of them with the lost block: an old
  // word that a frame which comes to lie there may leave as it is.
  puts("ready");
  fflush(stdout);
  WaitFor(&g_stop, 1);
  ForbidNothing();
  printf("filtered\n");
  fflush(stdout);
  for (;;) pause();
  return 0;
}

static int Chroot(void) {
  in_bss = Block("reachable");
  Lose();
  if (chroot("/usr") != 0) return 77;
  return 0;
}

static int ExitAtOnce(void) {
  in_bss = Block("reachable");
  Lose();
  fflush(stdout);
  _exit(3);
}

// Until it is told to end.
static int Talks(void) {
  in_bss = Block("reachable");
  Lose();
  CleanStack();
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    free(malloc(100));
    usleep(500);
  }
  return 0;
}

static int Idle(void) {
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
  return 0;
}

// Allocates nothing more until it is told to end.
static int EndsWhenTold(void) {
  signal(SIGUSR1, CountStop);
  Lose();
  puts("ready");
  fflush(stdout);
  WaitFor(&g_stop, 1);
  return 0;
}

const struct Case kProcessCases[] = {
    {"fork", Fork},
    {"forks_from_a_thread", ForksFromAThread},
    {"no_process", NoProcess},
    {"busy_alone", BusyAlone},
    {"tight", Tight},
    {"tight_until_raised", TightUntilRaised},
    {"io_uring", IoUring},
    {"seccomp", Seccomp},
    {"asked_before_a_filter", AskedBeforeAFilter},
    {"chroot", Chroot},
    {"_exit", ExitAtOnce},
    {"talks", Talks},
    {"idle", Idle},
    {"ends_when_told", EndsWhenTold},
    {NULL, NULL},
};
