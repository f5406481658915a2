/* sampled_churn: every block is freed, by whatever way and whichever thread.
 *
 *   sampled_churn THREADS ROUNDS
 *
 * Each thread puts new blocks of all kinds into slots that all share, and frees or reallocates
 * what lay there; some reallocs fail. In the end everything is freed, in a fork child a second
 * time over. Exit status 0, whatever is recorded of it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kSlots = 256 };

static _Atomic(char*) g_slots[kSlots];
static int g_rounds;

static void FreeAll(void) {
  for (int i = 0; i < kSlots; ++i) free(atomic_exchange(&g_slots[i], NULL));
}

static void* Churn(void* argument) {
  uint32_t random = (uint32_t)(uintptr_t)argument;
  for (int i = 0; i < g_rounds; ++i) {
    random = random * 1664525 + 1013904223;
    const size_t bytes = 1 + (random >> 8) % 600;
    _Atomic(char*)* slot = &g_slots[(random >> 20) % kSlots];
    char* block = NULL;
    switch (random >> 29) {
      case 0: block = calloc(1, bytes); break;
      case 1: block = aligned_alloc(64, (bytes + 63) / 64 * 64); break;
      case 2: block = atomic_exchange(slot, NULL);
              block = realloc(block, bytes);
              break;
      case 3: {
        block = atomic_exchange(slot, NULL);
        volatile size_t too_much = (size_t)PTRDIFF_MAX - 4096;
        if (block != NULL && realloc(block, too_much) != NULL) abort();
        break;
      }
      case 4: block = atomic_exchange(slot, NULL);
              if (block != NULL) block = reallocarray(block, 3, bytes / 3 + 1);
              break;
      default: block = malloc(bytes);
    }
    if (block != NULL) *block = (char)i;
    free(atomic_exchange(slot, block));
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  g_rounds = argc > 2 ? atoi(argv[2]) : 10000;
  pthread_t ids[64];
  if (threads < 1 || threads > 64) return 2;
  for (int i = 0; i < threads; ++i) {
    pthread_create(&ids[i], NULL, Churn, (void*)(intptr_t)(i + 1));
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  const pid_t child = fork();
  if (child == 0) {
    FreeAll();
    g_rounds /= 4;
    Churn((void*)(intptr_t)99);
    FreeAll();
    return 0;
  }
  FreeAll();
  int status = 1;
  waitpid(child, &status, 0);
  return status;
}
