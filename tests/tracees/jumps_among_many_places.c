// jumps_among_many_places: maps and unmaps memory at 2048 places while a handler jumps out of that every 50
// microseconds, and then allocates at 2048 others.

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static void* volatile g_block;

// Each place is a function of its own: a compiler takes a minute for as many cases of a switch.
#define PLACES_16(what, p) \
  what(p##0) what(p##1) what(p##2) what(p##3) what(p##4) what(p##5) what(p##6) what(p##7) \
  what(p##8) what(p##9) what(p##a) what(p##b) what(p##c) what(p##d) what(p##e) what(p##f)
#define PLACES_256(what, p) \
  PLACES_16(what, p##0) PLACES_16(what, p##1) PLACES_16(what, p##2) \
  PLACES_16(what, p##3) PLACES_16(what, p##4) PLACES_16(what, p##5) \
  PLACES_16(what, p##6) PLACES_16(what, p##7) PLACES_16(what, p##8) \
  PLACES_16(what, p##9) PLACES_16(what, p##a) PLACES_16(what, p##b) \
  PLACES_16(what, p##c) PLACES_16(what, p##d) PLACES_16(what, p##e) \
  PLACES_16(what, p##f)
#define PLACES_2048(what) \
  PLACES_256(what, x0) PLACES_256(what, x1) PLACES_256(what, x2) PLACES_256(what, x3) \
  PLACES_256(what, x4) PLACES_256(what, x5) PLACES_256(what, x6) PLACES_256(what, x7)
enum { kPlaces = 2048 };

#define FUNCTIONS(place)                                                                            \
  static __attribute__((noinline)) void map_##place(void) {                                         \
    g_block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);         \
    munmap(g_block, 4096);                                                                          \
    g_block = NULL;                                                                                 \
  }                                                                                                 \
  static __attribute__((noinline)) void allocate_##place(void) {                                    \
    g_block = malloc(9);                                                                            \
    free(g_block);                                                                                  \
    g_block = NULL;                                                                                 \
  }
#define MAP_AT(place) map_##place,
#define ALLOCATE_AT(place) allocate_##place,

PLACES_2048(FUNCTIONS)
static void (*const g_map_at[kPlaces])(void) = {PLACES_2048(MAP_AT)};
static void (*const g_allocate_at[kPlaces])(void) = {PLACES_2048(ALLOCATE_AT)};

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
    g_map_at[here]();
  }
  setitimer(ITIMER_REAL, &never, NULL);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kPlaces; ++i) g_allocate_at[i]();
  }
  printf("%d jumps\n", g_jumps);
  return 0;
}
