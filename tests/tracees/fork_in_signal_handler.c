/* fork_in_signal_handler SIGNALS: a timer interrupts a thread that does nothing but
 * allocate, and the handler forks. A child in turn ends in the handler, executes
 * /bin/true, or returns from the handler to what was interrupted, goes on with it, and
 * ends. The parent says "children N" when all of them have ended well. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracees/expect.h"

static volatile sig_atomic_t g_children, g_failed, g_wanted, g_is_child;

static void OnTimer(int signal) {
  (void)signal;
  if (g_is_child || g_children >= g_wanted) return;
  const int saved = errno, kind = g_children++ % 3;
  const pid_t child = fork();
  if (child == 0) {
    g_is_child = 1;
    alarm(60);
    if (kind == 0) _exit(0);
    if (kind == 1) {
      execl("/bin/true", "true", (char*)NULL);
      _exit(5);
    }
    errno = saved;
    return;
  }
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) ++g_failed;
  errno = saved;
}

int main(int argc, char** argv) {
  struct sigaction action = {.sa_handler = OnTimer, .sa_flags = SA_RESTART};
  g_wanted = argc > 1 ? atoi(argv[1]) : 30;
  sigaction(SIGPROF, &action, NULL);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every, NULL);
  static void* kept[32];
  for (long i = 0; g_children < g_wanted && !g_is_child; ++i) {
    free(kept[i % 32]);
    kept[i % 32] = malloc((size_t)(i % 200 + 1));
  }
  if (g_is_child) {
    for (int i = 0; i < 10000; ++i) {
      free(kept[i % 32]);
      kept[i % 32] = malloc((size_t)(i % 200 + 1));
    }
    _exit(0);
  }
  const struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &off, NULL);
  if (g_failed != 0) Tell("failed %d\n", (int)g_failed);
  Tell("children %d\n", (int)g_children);
  return g_failed != 0;
}
