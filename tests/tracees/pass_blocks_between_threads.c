/* pass_blocks_between_threads: blocks change hands as fast as they can.
 *
 *   pass_blocks_between_threads THREADS ROUNDS
 *
 * Each thread puts a new block in a slot that all share and frees or reallocates what lay there,
 * most often a block of another thread's, of an address that is then at once given to a third.
 * Prints how many allocations, frees, and live blocks and bytes of this file's own there were
 * in the end; an independent ledger, kept by the program about itself. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSlots = 32, kMaxThreads = 64 };

struct Block {
  size_t bytes;
  char payload[];
};

static _Atomic(struct Block*) g_slots[kSlots];
static atomic_long g_allocations, g_frees;
static int g_rounds;

__attribute__((noinline)) static struct Block* Allocate(size_t bytes) {
  struct Block* block = malloc(bytes);
  block->bytes = bytes;
  return block;
}

__attribute__((noinline)) static struct Block* Resize(struct Block* block, size_t bytes) {
  block = realloc(block, bytes);
  block->bytes = bytes;
  return block;
}

static void* PassBlocks(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
  long allocations = 0, frees = 0;
  for (int i = 0; i < g_rounds; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    struct Block* block = Allocate(16 + random % 200);
    ++allocations;
    block = atomic_exchange(&g_slots[random >> 32 & (kSlots - 1)], block);
    if (block != NULL && random >> 60 == 0) {
      block = Resize(block, 16 + (random >> 8) % 2000);
      ++allocations;
      ++frees;
      block = atomic_exchange(&g_slots[random >> 40 & (kSlots - 1)], block);
    }
    if (block != NULL) {
      free(block);
      ++frees;
    }
  }
  atomic_fetch_add(&g_allocations, allocations);
  atomic_fetch_add(&g_frees, frees);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int threads = atoi(argv[1]);
  if (threads < 1 || threads > kMaxThreads) return 2;
  g_rounds = atoi(argv[2]);
  pthread_t ids[kMaxThreads];
  for (int i = 0; i < threads; ++i) {
    pthread_create(&ids[i], NULL, PassBlocks, (void*)(uintptr_t)(i + 1));
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  long live_blocks = 0, live_bytes = 0;
  for (int i = 0; i < kSlots; ++i) {
    const struct Block* block = g_slots[i];
    if (block == NULL) continue;
    ++live_blocks;
    live_bytes += (long)block->bytes;
  }
  char line[200];
  const int length = snprintf(line, sizeof(line), "%ld %ld %ld %ld\n", (long)g_allocations,
                              (long)g_frees, live_blocks, live_bytes);
  return write(1, line, (size_t)length) == length ? 0 : 1;
}
