/* Sixty threads with one alternate signal stack, as Varnish has it, that wait and wake all the time; each
 * holds a block by a variable of its own. The main thread ends the program in the midst of it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 60, kHeldBytes = 777 };

static char g_stack[1 << 16];
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t g_ready;

static void* Wait(void* unused) {
  const stack_t stack = {.ss_sp = g_stack, .ss_size = sizeof(g_stack)};
  if (sigaltstack(&stack, NULL) != 0) _exit(9);
  void* volatile held = malloc(kHeldBytes);
  pthread_barrier_wait(&g_ready);
  pthread_mutex_lock(&g_mutex);
  for (;;) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 500000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      ++until.tv_sec;
    }
    pthread_cond_timedwait(&g_never, &g_mutex, &until);
  }
  free(held);
  return unused;
}

int main(void) {
  pthread_barrier_init(&g_ready, NULL, kThreads + 1);
  pthread_t thread;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&thread, NULL, Wait, NULL) != 0) return 8;
  }
  pthread_barrier_wait(&g_ready);
  usleep(20000);
  puts("bye");
  return 0;
}
