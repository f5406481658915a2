/* struck_at_every_instruction CALL STRIDE: a signal at each instruction of a call, one
 * after another; with STRIDE n at every n-th.
 *
 * The processor's trap flag stops the thread behind every instruction. At the one whose turn
 * it is the trap's handler sends SIGUSR1, which strikes when that handler returns: at that
 * instruction, or where the tracer has signals blocked, behind it. SIGUSR1's handler
 * allocates. Behind safe_allocator.c. x86-64. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "expect.h"

static volatile long g_step, g_struck_at = -1;
static volatile sig_atomic_t g_handled;
static void* volatile g_kept;

__attribute__((noinline)) static void HandlerAllocates(void) {
  void* old = g_kept;
  free(old);
  g_kept = realloc(malloc(2001), 2002);
  free(calloc(1, 2003));
}

static void OnUser(int signal) {
  (void)signal;
  HandlerAllocates();
  ++g_handled;
}

static void OnStep(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  if (g_step++ != g_struck_at) return;
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
  /* The rest of the call runs freely. */
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

__attribute__((noinline)) static void Malloc(void) { free(malloc(2011)); }
__attribute__((noinline)) static void Calloc(void) { free(calloc(3, 671)); }
__attribute__((noinline)) static void Realloc(void) { free(realloc(malloc(2014), 2015)); }
__attribute__((noinline)) static void Align(void) {
  void* block;
  if (posix_memalign(&block, 64, 2016) != 0) _exit(9);
  free(block);
}
__attribute__((noinline)) static void Map(void) {
  void* mapping = mmap(NULL, 12288, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(mapping, 12288);
}
__attribute__((noinline)) static void Elsewhere(void) {
  void* volatile block = malloc(2017); /* another stack each time */
  Malloc();
  free(block);
}

/* See tests/oracle/stepped_code_test.cc. */
__attribute__((noinline)) static void Step(void (*function)(void)) {
  g_step = 0;
  __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tnop" ::: "cc", "memory");
  function();
  g_struck_at = -1; /* not between the next two instructions, where rsp is not what the CFI says */
  __asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc", "memory");
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  static const struct {
    const char* name;
    void (*function)(void);
  } kCalls[] = {{"malloc", Malloc}, {"calloc", Calloc}, {"realloc", Realloc},
                {"align", Align},   {"map", Map},       {"elsewhere", Elsewhere}};
  void (*function)(void) = NULL;
  for (size_t i = 0; i < sizeof(kCalls) / sizeof(*kCalls); ++i) {
    if (strcmp(argv[1], kCalls[i].name) == 0) function = kCalls[i].function;
  }
  if (function == NULL) return 2;
  struct sigaction action = {.sa_sigaction = OnStep, .sa_flags = SA_RESTART | SA_SIGINFO};
  sigfillset(&action.sa_mask);
  sigaction(SIGTRAP, &action, NULL);
  action.sa_handler = OnUser;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  for (int warm = 0; warm < 20; ++warm) function();
  raise(SIGUSR1);
  long handled = 1;
  const long stride = atol(argv[2]);
  /* Until the call is over before the instruction's turn comes. */
  for (long at = 0;; at += stride) {
    g_struck_at = at;
    g_handled = 0;
    Step(function);
    if (g_handled > 1) return 3;
    if (g_handled == 0) break;
    handled += g_handled;
  }
  Expect(2001, handled, "HandlerAllocates OnUser");
  Expect(2002, handled, "HandlerAllocates OnUser");
  Expect(2003, handled, "HandlerAllocates OnUser");
  Tell("instructions %ld\nhandled %ld\n", g_step, handled);
  return 0;
}
