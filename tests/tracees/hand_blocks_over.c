/* hand_blocks_over: blocks go from thread to thread through queues, at full speed.
 *
 *   hand_blocks_over THREADS ROUNDS
 *
 * The threads stand in a ring. Each makes a block and puts it in the queue of its neighbour; takes
 * one from its own queue and by turns frees it, gives it on, or makes it larger and gives it on.
 * All blocks are of a few sizes, so that an address that one thread has freed is at once another's:
 * of the same thread out of its cache, or of any thread out of the arena, see the environment
 * (MALLOC_ARENA_MAX, glibc.malloc.tcache_count). Also blocks that nobody else ever sees. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { kMaxThreads = 64, kQueue = 16 };

/* One writer, one reader. */
struct Queue {
  _Alignas(64) _Atomic unsigned head;
  _Alignas(64) _Atomic unsigned tail;
  _Alignas(64) void* items[kQueue];
};
static struct Queue g_queues[kMaxThreads];
static int g_threads, g_rounds;

static int Put(struct Queue* queue, void* item) {
  const unsigned tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
  if (tail - atomic_load_explicit(&queue->head, memory_order_acquire) == kQueue) return 0;
  queue->items[tail % kQueue] = item;
  atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
  return 1;
}

static void* Take(struct Queue* queue) {
  const unsigned head = atomic_load_explicit(&queue->head, memory_order_relaxed);
  if (head == atomic_load_explicit(&queue->tail, memory_order_acquire)) return NULL;
  void* item = queue->items[head % kQueue];
  atomic_store_explicit(&queue->head, head + 1, memory_order_release);
  return item;
}

static void* Run(void* argument) {
  const int self = (int)(intptr_t)argument;
  struct Queue* mine = &g_queues[self];
  struct Queue* next = &g_queues[(self + 1) % g_threads];
  static const size_t kSizes[] = {24, 24, 40, 100, 1000, 3000};
  uint64_t random = (uint64_t)(self + 1) * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < g_rounds; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    void* block = malloc(kSizes[random % 6]);
    if (!Put(next, block)) free(block);
    void* taken = Take(mine);
    if (taken != NULL) {
      if (random >> 62 == 0) taken = realloc(taken, kSizes[(random >> 8) % 6]);
      if (random >> 60 == 4 && Put(next, taken)) taken = NULL;
      free(taken);
    }
    if ((random >> 16 & 3) == 0) {
      void* own = calloc(1, kSizes[(random >> 20) % 6]);
      free(own);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_threads = atoi(argv[1]);
  if (g_threads < 1 || g_threads > kMaxThreads) return 2;
  g_rounds = atoi(argv[2]);
  pthread_t ids[kMaxThreads];
  for (int i = 0; i < g_threads; ++i) {
    pthread_create(&ids[i], NULL, Run, (void*)(intptr_t)i);
  }
  for (int i = 0; i < g_threads; ++i) pthread_join(ids[i], NULL);
  return 0;
}
