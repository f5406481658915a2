/* holders_of_others HOW: the main thread allocates a block, another one has to do with a block within
 * it, and the main thread frees it, 1000 times. Sizes tell which block is which.
 *
 *   cut       the other thread cuts three blocks of 100 bytes out of it, which end with it
 *   give-back the other thread cuts one of 100 bytes and ends it itself
 *   destroy   the same by the end of its pool
 *   ignore    the other thread says of an address within it that it is no leak; then the main thread
 *             loses one of its size, which is */
#include <memtrace.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { kTimes = 1000 };

static pthread_barrier_t g_turn;
static char *g_block;
static const char *g_how;
static void *volatile g_sink;

static void *Other(void *unused) {
  static char pool;
  for (int i = 0; i < kTimes; ++i) {
    pthread_barrier_wait(&g_turn);
    if (strcmp(g_how, "ignore") == 0) {
      memtrace_ignore_object(g_block + 24);
    } else if (strcmp(g_how, "cut") == 0) {
      for (int part = 0; part < 3; ++part) memtrace_block_alloc(g_block + 64 + part * 128, 100);
    } else {
      memtrace_pool_create(&pool, "others", 0);
      memtrace_pool_alloc(&pool, g_block + 64, 100);
      if (strcmp(g_how, "give-back") == 0) memtrace_pool_free(&pool, g_block + 64);
      memtrace_pool_destroy(&pool);
    }
    pthread_barrier_wait(&g_turn);
  }
  return unused;
}

int main(int argc, char **argv) {
  pthread_t other;
  if (argc != 2) return 2;
  g_how = argv[1];
  pthread_barrier_init(&g_turn, NULL, 2);
  if (pthread_create(&other, NULL, Other, NULL) != 0) return 1;
  for (int i = 0; i < kTimes; ++i) {
    g_block = malloc(1000);
    pthread_barrier_wait(&g_turn);
    pthread_barrier_wait(&g_turn);
    free(g_block);
    g_block = NULL;
    if (strcmp(g_how, "ignore") == 0) g_sink = malloc(1000);
  }
  g_sink = NULL;
  pthread_join(other, NULL);
  pthread_barrier_destroy(&g_turn);
  return 0;
}
