/* waits_for_a_blocked_fault N...: blocks each signal, sends it to itself, allocates, and takes it by
 * sigwait(). Of those that a fault raises, too, the program that blocks them has them pending. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    const int signal_number = atoi(argv[i]);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), signal_number);
    for (int k = 0; k < 20000; ++k) {
      void *volatile block = malloc(100);
      free(block);
    }
    int got = 0;
    if (sigwait(&set, &got) != 0 || got != signal_number) return 2;
  }
  return 0;
}
