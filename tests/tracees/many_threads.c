/* many_threads HOW THREADS [AT_ONCE | SLEEPERS]
 *
 *   at_once     all THREADS live at the same time; each allocates ten times, gets a name of
 *               its own, waits for the others, and frees as it ends: in destructors of
 *               thread-specific data, over several rounds
 *   in_turn     one after another, AT_ONCE at a time: joined, detached, cancelled, or ended by
 *               pthread_exit() while others end
 *   beside      the same, one at a time, beside SLEEPERS that live from before the first of them
 *               until the last has ended
 *
 * What it allocates it frees, so that nothing of these sizes is live at the end. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { kBlocks = 10, kRounds = 3 };

static pthread_key_t g_key;
static pthread_barrier_t g_all_here;
static _Atomic long g_ended;
static sem_t g_free_places;

struct Late {
  int rounds;
  void* blocks[kBlocks];
};

__attribute__((noinline)) static struct Late* Early(void) {
  struct Late* late = malloc(3001);
  late->rounds = 0;
  for (int i = 0; i < kBlocks; ++i) late->blocks[i] = malloc(3002);
  __asm__ volatile("");
  return late;
}

/* Each round of destructors frees a part, allocates, and asks for another round. */
__attribute__((noinline)) static void OnThreadEnd(void* data) {
  struct Late* late = data;
  free(malloc(3003));
  if (++late->rounds < kRounds) {
    free(late->blocks[late->rounds]);
    late->blocks[late->rounds] = NULL;
    pthread_setspecific(g_key, late);
    return;
  }
  for (int i = 0; i < kBlocks; ++i) free(late->blocks[i]);
  free(late);
  ++g_ended;
  sem_post(&g_free_places);
}

static void* IsOneOfAll(void* number) {
  pthread_setspecific(g_key, Early());
  char name[16];
  snprintf(name, sizeof(name), "one of all %ld", (long)number % 10);
  pthread_setname_np(pthread_self(), name); /* late: after its first event */
  pthread_barrier_wait(&g_all_here);
  return NULL;
}

static void* ComesAndGoes(void* how) {
  pthread_setspecific(g_key, Early());
  switch ((long)how) {
    case 1: pthread_exit(NULL);
    case 2:
      for (;;) pthread_testcancel();
    default: return NULL;
  }
}

static int AtOnce(long threads, const pthread_attr_t* attributes) {
  pthread_t* ids = malloc((size_t)threads * sizeof(*ids));
  pthread_barrier_init(&g_all_here, NULL, (unsigned)threads + 1);
  for (long i = 0; i < threads; ++i) {
    if (pthread_create(&ids[i], attributes, IsOneOfAll, (void*)i) != 0) {
      Tell("refused %ld\n", i); /* by a limit of the machine */
      _exit(77);
    }
  }
  pthread_barrier_wait(&g_all_here);
  for (long i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  free(ids);
  return 0;
}

static int InTurn(long threads, int at_once, pthread_attr_t* attributes) {
  sem_init(&g_free_places, 0, (unsigned)at_once);
  for (long i = 0; i < threads; ++i) {
    while (sem_wait(&g_free_places) != 0) {
    }
    const long how = i % 4; /* returns, exits, is cancelled, is detached */
    pthread_attr_setdetachstate(attributes,
                                how == 2 ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    pthread_t id;
    while (pthread_create(&id, attributes, ComesAndGoes, (void*)how) != 0) {
      if (errno != EAGAIN && errno != 0) return 3;
    }
    if (how == 2) {
      pthread_cancel(id);
      pthread_join(id, NULL);
    }
  }
  while (g_ended < threads) sched_yield();
  return 0;
}

static void* Sleeps(void* nothing) {
  pthread_setspecific(g_key, Early());
  pthread_barrier_wait(&g_all_here);
  pthread_barrier_wait(&g_all_here);
  return nothing;
}

static int Beside(long threads, long sleepers, pthread_attr_t* attributes) {
  pthread_t* ids = malloc((size_t)sleepers * sizeof(*ids));
  pthread_barrier_init(&g_all_here, NULL, (unsigned)sleepers + 1);
  for (long i = 0; i < sleepers; ++i) {
    if (pthread_create(&ids[i], attributes, Sleeps, NULL) != 0) _exit(77);
  }
  pthread_barrier_wait(&g_all_here);
  const int result = InTurn(threads, 1, attributes);
  pthread_barrier_wait(&g_all_here);
  for (long i = 0; i < sleepers; ++i) pthread_join(ids[i], NULL);
  free(ids);
  return result;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long threads = atol(argv[2]);
  pthread_key_create(&g_key, OnThreadEnd);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  const long beside = argc > 3 ? atol(argv[3]) : 8;
  long all = threads;
  int result;
  if (strcmp(argv[1], "at_once") == 0) {
    result = AtOnce(threads, &attributes);
  } else if (strcmp(argv[1], "beside") == 0) {
    result = Beside(threads, beside, &attributes);
    all += beside;
  } else {
    result = InTurn(threads, (int)beside, &attributes);
  }
  if (result != 0) return result;
  Expect(3001, all, "Early");
  Expect(3002, all * kBlocks, "Early");
  Expect(3003, all * kRounds, "OnThreadEnd");
  return 0;
}
