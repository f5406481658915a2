// tls_destructor: a thread's last allocations happen while it is being taken down.
//
// The destructor of a thread-specific value frees it, allocates and leaks a farewell, and sets the
// value again, so that it is called in every round that POSIX allows (4). Nothing of that is
// lost, and none of it hurts the thread.
//
//   expect: leak 160 bytes in 4 blocks at @farewell in SayFarewell
//   expect: leak 72 bytes in 1 block at @again in SayFarewell
//   expect: site at @value in Work: allocations == 1, frees == 1
//   expect: site at @again in SayFarewell: allocations == 4, frees == 3
#include <pthread.h>
#include <stdlib.h>

static pthread_key_t g_key;
static char* volatile g_farewell;

static void SayFarewell(void* value) {
  free(value);
  g_farewell = malloc(40);             // @farewell
  pthread_setspecific(g_key, malloc(72));  // @again
}

static void* Work(void* unused) {
  pthread_setspecific(g_key, malloc(24));  // @value
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_key_create(&g_key, SayFarewell);
  pthread_create(&thread, NULL, Work, NULL);
  pthread_join(thread, NULL);
  g_farewell = NULL;
  return 0;
}
