/* killed_while_allocating: waits to be killed with SIGKILL after a known number of allocations.
 *
 *   killed_while_allocating BLOCKS
 *
 * Two threads and main allocate BLOCKS blocks of 50 bytes each and keep them; then "ready" is
 * written, and nothing more happens. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int g_blocks;
static pthread_barrier_t g_done;

__attribute__((noinline)) static void KeepBlocks(void) {
  static void* volatile last;
  (void)last;
  for (int i = 0; i < g_blocks; ++i) last = malloc(50);
}

static void* Work(void* unused) {
  KeepBlocks();
  pthread_barrier_wait(&g_done);
  for (;;) pause();
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  g_blocks = atoi(argv[1]);
  pthread_barrier_init(&g_done, NULL, 3);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Work, NULL);
  KeepBlocks();
  pthread_barrier_wait(&g_done);
  if (write(1, "ready\n", 6) != 6) return 1;
  for (;;) pause();
}
