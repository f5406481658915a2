/* keeps_talking: two threads allocate and free in rounds; each round is told on standard output.
 *
 *   keeps_talking ROUNDS [AT WHAT TO]...
 *
 * At the begin of round AT something happens to its world:
 *   fill FILE      FILE is written until the disk is full
 *   unlink FILE    FILE, or an empty directory, is removed
 *   replace FILE   another file takes the place of FILE
 *   move FILE      FILE is renamed to FILE.moved
 *   fsize N, nofile N    RLIMIT_FSIZE, RLIMIT_NOFILE: the soft limit
 *   nofile-for-good N    RLIMIT_NOFILE, both limits
 *   thread 0       a third thread does as the two, for a round
 *   kill N         signal N to itself
 *
 * In the last round KeepLast() allocates 777 blocks and keeps them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { kPairs = 3000, kLast = 777 };
static pthread_barrier_t g_round;
static int g_rounds;

__attribute__((noinline)) static void Pairs(void) {
  for (int i = 0; i < kPairs; ++i) {
    void* volatile block = malloc(16 + (size_t)i % 32);
    free(block);
  }
}

__attribute__((noinline)) static void KeepLast(void) {
  static void* volatile last;
  for (int i = 0; i < kLast; ++i) last = malloc(50);
  (void)last;
}

static void* Work(void* unused) {
  for (int round = 0; round < g_rounds; ++round) {
    pthread_barrier_wait(&g_round);
    Pairs();
    pthread_barrier_wait(&g_round);
  }
  return unused;
}

static void* OneRound(void* unused) {
  Pairs();
  return unused;
}

static void Limit(int resource, const char* to, int for_good) {
  struct rlimit limit;
  getrlimit(resource, &limit);
  limit.rlim_cur = strtoull(to, NULL, 10);
  if (for_good) limit.rlim_max = limit.rlim_cur;
  setrlimit(resource, &limit);
}

static void Happen(const char* what, const char* to) {
  static char content[4096];
  char other[4200];
  if (strcmp(what, "fill") == 0) {
    const int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    while (write(fd, content, sizeof(content)) > 0) {
    }
    close(fd);
  } else if (strcmp(what, "unlink") == 0) {
    if (remove(to) != 0) perror(to);
  } else if (strcmp(what, "replace") == 0) {
    snprintf(other, sizeof(other), "%s.new", to);
    const int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, "somebody else's\n", 16) != 16 || rename(other, to) != 0) perror(to);
    close(fd);
  } else if (strcmp(what, "move") == 0) {
    snprintf(other, sizeof(other), "%s.moved", to);
    if (rename(to, other) != 0) perror(to);
  } else if (strcmp(what, "fsize") == 0) {
    Limit(RLIMIT_FSIZE, to, 0);
  } else if (strcmp(what, "nofile") == 0) {
    Limit(RLIMIT_NOFILE, to, 0);
  } else if (strcmp(what, "nofile-for-good") == 0) {
    Limit(RLIMIT_NOFILE, to, 1);
  } else if (strcmp(what, "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, OneRound, NULL) == 0) pthread_join(thread, NULL);
  } else if (strcmp(what, "kill") == 0) {
    kill(getpid(), atoi(to));
  }
}

int main(int argc, char** argv) {
  if (argc < 2 || argc % 3 != 2) return 2;
  g_rounds = atoi(argv[1]);
  pthread_barrier_init(&g_round, NULL, 3);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Work, NULL);
  for (int round = 0; round < g_rounds; ++round) {
    for (int i = 2; i < argc; i += 3) {
      if (atoi(argv[i]) == round) Happen(argv[i + 1], argv[i + 2]);
    }
    pthread_barrier_wait(&g_round);
    pthread_barrier_wait(&g_round);
    char line[32];
    const int length = snprintf(line, sizeof(line), "round %d\n", round);
    if (write(1, line, (size_t)length) != length) return 3;
  }
  KeepLast();
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return 23;
}
