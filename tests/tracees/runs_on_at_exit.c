/* runs_on_at_exit FILE [worker | blocked | child]: a thread that goes on while main returns with half a
 * million blocks that are still reachable. FILE has afterwards, as a uint64_t, how often the thread came
 * by, a thousand times a second at most, when all destructors had run: what it uses may be destroyed by
 * then. `worker`: another thread calls exit(), which has never allocated. `blocked`: it is of a thread
 * that blocks all signals. `child`: a child ends a moment later, which raises a signal that is ignored.
 * `daemon`: it becomes a daemon; FILE has 1 and how many real-time signals that has a handler for.
 * `no_daemon`: it may make no process and so becomes none, and loses 100 blocks of 1000 bytes then. */
#define _DEFAULT_SOURCE
#include <sys/resource.h>
#include <signal.h>
#include <string.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS 500000

static volatile int destroyed;
static volatile uint64_t *turns;
static void *blocks[BLOCKS];

__attribute__((destructor)) static void Destroy(void) { destroyed = 1; }

static void *GoOn(void *nothing) {
  for (;;) {
    usleep(1000);
    if (destroyed) ++*turns;
  }
  return nothing;
}

static void *Exit(void *nothing) {
  exit(0);
  return nothing;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  const char *const way = argc > 2 ? argv[2] : "";
  const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, sizeof(uint64_t)) != 0) return 2;
  turns = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (turns == MAP_FAILED) return 2;
  for (int i = 0; i < BLOCKS; ++i) blocks[i] = malloc(40);
  pthread_t thread;
  if (pthread_create(&thread, NULL, GoOn, NULL) != 0) return 2;
  if (strcmp(way, "worker") == 0) {
    pthread_t worker;
    if (pthread_create(&worker, NULL, Exit, NULL) != 0) return 2;
    pthread_join(worker, NULL);
  } else if (strcmp(way, "blocked") == 0) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
  } else if (strcmp(way, "daemon") == 0) {
    if (daemon(1, 1) != 0) return 77;
    uint64_t handled = 1;
    for (int signal = 34; signal <= 64; ++signal) {
      struct sigaction action;
      handled += sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL;
    }
    *turns = handled;
  } else if (strcmp(way, "no_daemon") == 0) {
    const struct rlimit none = {0, 0};
    if (setgid(65534) != 0 || setuid(65534) != 0 || setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
    if (daemon(1, 1) == 0) return 77;
    for (int i = 0; i < 100; ++i) {
      char *volatile lost = malloc(1000);
      *lost = 1;
      lost = NULL;
    }
  } else if (strcmp(way, "child") == 0 && fork() == 0) {
    close(1);
    close(2);
    usleep(20000);
    _exit(0);
  }
  return 0;
}
