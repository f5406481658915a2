// jumps_on_another_stack: maps and unmaps memory on a stack of its own while a handler jumps out of that every 20
// microseconds, 100 times at least. Then it goes on on the first stack, and ends in the way that its argument says.

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static void* volatile g_block;
static sigjmp_buf g_out;
static volatile int g_jumps;
static ucontext_t g_first, g_other;
static char g_stack[256 << 10];

static void jump(int signal) {
  (void)signal;
  ++g_jumps;
  siglongjmp(g_out, 1);
}

static void map_and_unmap(void) {
  const struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
  // The signal stays blocked until the handler's frame is left: where it comes faster than that, there
  // would be one handler upon the other, beyond the end of the stack.
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  if (sigsetjmp(g_out, 0) != 0) sigprocmask(SIG_UNBLOCK, &alarm, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  while (g_jumps < 100) {
    g_block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(g_block, 4096);
  }
  setitimer(ITIMER_REAL, &never, NULL);
}

int main(int argc, char** argv) {
  struct sigaction action = {0};
  action.sa_handler = jump;
  sigaction(SIGALRM, &action, NULL);
  getcontext(&g_other);
  g_other.uc_stack.ss_sp = g_stack;
  g_other.uc_stack.ss_size = sizeof(g_stack);
  g_other.uc_link = &g_first;
  makecontext(&g_other, map_and_unmap, 0);
  swapcontext(&g_first, &g_other);
  g_block = malloc(9);
  free(g_block);
  const char* const how = argc > 1 ? argv[1] : "return";
  if (strcmp(how, "_exit") == 0) _exit(7);
  if (strcmp(how, "exec") == 0) execl("/bin/true", "true", (char*)NULL);
  return 7;
}
