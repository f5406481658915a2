// jumps_among_many_places: maps and unmaps memory at 4096 places while a handler jumps out of that every 50
// microseconds, and then allocates at 4096 others.

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static void* volatile g_block;

// A place is a call of its own: the compiler must not make one of two.
#define MAP_HERE                                                                                  \
  g_block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);          \
  munmap(g_block, 4096);                                                                           \
  break;
#define ALLOCATE_HERE     \
  g_block = malloc(9);    \
  free(g_block);          \
  break;

#define CASE(n, what) case n: what
#define CASES_4(n, what) CASE(n, what) CASE(n + 1, what) CASE(n + 2, what) CASE(n + 3, what)
#define CASES_16(n, what) \
  CASES_4(n, what) CASES_4(n + 4, what) CASES_4(n + 8, what) CASES_4(n + 12, what)
#define CASES_64(n, what) \
  CASES_16(n, what) CASES_16(n + 16, what) CASES_16(n + 32, what) CASES_16(n + 48, what)
#define CASES_256(n, what) \
  CASES_64(n, what) CASES_64(n + 64, what) CASES_64(n + 128, what) CASES_64(n + 192, what)
#define CASES_1024(n, what) \
  CASES_256(n, what) CASES_256(n + 256, what) CASES_256(n + 512, what) CASES_256(n + 768, what)
#define CASES_4096(what) \
  CASES_1024(0, what) CASES_1024(1024, what) CASES_1024(2048, what) CASES_1024(3072, what)
enum { kPlaces = 4096 };

static void map_at(int place) {
  switch (place) { CASES_4096(MAP_HERE) }
}
static void allocate_at(int place) {
  switch (place) { CASES_4096(ALLOCATE_HERE) }
}

static sigjmp_buf g_out;
static volatile int g_jumps;
static void jump(int signal) {
  (void)signal;
  ++g_jumps;
  siglongjmp(g_out, 1);
}

int main(void) {
  struct sigaction action = {0};
  action.sa_handler = jump;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  volatile int place = 0;
  sigsetjmp(g_out, 1);
  setitimer(ITIMER_REAL, &often, NULL);
  while (place < kPlaces) {
    const int here = place;
    place = here + 1;
    map_at(here);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kPlaces; ++i) allocate_at(i);
  }
  printf("%d jumps\n", g_jumps);
  return 0;
}
