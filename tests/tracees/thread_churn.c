/* thread_churn: many short threads, each of which allocates, and frees late: in the destructor
 * of a thread-specific key, and, as every thread does, in libc's own teardown after that.
 *
 *   thread_churn THREADS AT_ONCE */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "expect.h"

static pthread_key_t g_key;
static volatile int g_sink;

__attribute__((noinline)) static void* Early(void) { return malloc(501); }

__attribute__((noinline)) static void Late(void* block) {
  free(block);
  free(malloc(502));
  g_sink = g_sink + 1;
}

__attribute__((noinline)) static void* Short(void* unused) {
  pthread_setspecific(g_key, Early());
  free(malloc(503));
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int threads = atoi(argv[1]), at_once = atoi(argv[2]);
  pthread_t ids[64];
  if (at_once > 64 || pthread_key_create(&g_key, Late) != 0) return 2;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  for (int done = 0; done < threads; done += at_once) {
    for (int i = 0; i < at_once; ++i) {
      if (pthread_create(&ids[i], &attributes, Short, NULL) != 0) return 3;
    }
    for (int i = 0; i < at_once; ++i) pthread_join(ids[i], NULL);
  }
  Expect(501, threads, "Early Short");
  Expect(502, threads, "Late");
  Expect(503, threads, "Short");
  return 0;
}
