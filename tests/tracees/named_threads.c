/* Two named threads, one after the other; each allocates twice, 150 ms apart. Prints
 * the nanoseconds between its two allocations as it measured them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static void *volatile g_kept[4];

static long long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void Work(const char *name, int first_size, void *volatile *kept, long long *apart) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
  const long long start = Now();
  kept[0] = malloc((size_t)first_size);
  const struct timespec pause = {0, 150000000};
  nanosleep(&pause, NULL);
  kept[1] = malloc((size_t)first_size + 1);
  *apart = Now() - start;
}

static long long g_apart[2];
static void *First(void *unused) {
  Work("first-worker", 1001, g_kept, &g_apart[0]);
  return unused;
}
static void *Second(void *unused) {
  Work("second-worker", 2001, g_kept + 2, &g_apart[1]);
  return unused;
}

int main(void) {
  void *(*const bodies[])(void *) = {First, Second};
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, bodies[i], NULL) != 0) return 1;
    pthread_join(thread, NULL);
  }
  printf("%lld %lld\n", g_apart[0], g_apart[1]);
  return 0;
}
