// freed_by_other_thread: one thread allocates, another frees.
//
// The producer allocates 10000 blocks of 64 bytes, the consumer frees all but every hundredth. The
// leak belongs to the producer's call site; no free is taken for the free of another block, though
// the allocator gives the same addresses again and again.
//
//   expect: leak 6400 bytes in 100 blocks at @produce in Produce
//   expect: site at @produce in Produce: allocations == 10000, frees == 9900
//   expect: site at @produce in Produce: bytes_allocated == 640000
//   expect: /coverage/unordered_events == 0
//   expect: /coverage/dropped_events == 0
//   expect: thread "producer" allocations == 10000
//   expect: thread "consumer" frees == 9900
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { kBlocks = 10000, kSlots = 64 };

static _Atomic(char*) g_slots[kSlots];

static void* Produce(void* unused) {
  pthread_setname_np(pthread_self(), "producer");
  for (int i = 0; i < kBlocks; ++i) {
    char* block = malloc(64);  // @produce
    block[0] = i % 100 == 0;
    while (atomic_load(&g_slots[i % kSlots]) != NULL) {
    }
    atomic_store(&g_slots[i % kSlots], block);
  }
  return unused;
}

static void* Consume(void* unused) {
  pthread_setname_np(pthread_self(), "consumer");
  for (int i = 0; i < kBlocks; ++i) {
    char* block;
    while ((block = atomic_exchange(&g_slots[i % kSlots], NULL)) == NULL) {
    }
    if (!block[0]) free(block);
  }
  return unused;
}

int main(void) {
  pthread_t producer, consumer;
  pthread_create(&producer, NULL, Produce, NULL);
  pthread_create(&consumer, NULL, Consume, NULL);
  pthread_join(producer, NULL);
  pthread_join(consumer, NULL);
  return 0;
}
