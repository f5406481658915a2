/* exceptions_and_cancellation: a C program whose frames are unwound, by exceptions of a C++ plugin
 * and by the cancellation and the exit of threads; cleanup code allocates on the way.
 *
 *   exceptions_and_cancellation DIRECTORY ROUNDS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "expect.h"

static volatile int g_sink;

__attribute__((noinline)) static void CallsBack(void (*throw_from)(int)) {
  throw_from(3);
  g_sink = g_sink + 1;
}

__attribute__((noinline)) static void CleanUp(void* unused) {
  (void)unused;
  free(malloc(711));
  g_sink = g_sink + 1;
}

__attribute__((noinline)) static void Waits(int fd) {
  pthread_cleanup_push(CleanUp, NULL);
  char byte;
  while (read(fd, &byte, 1) > 0) g_sink = g_sink + 1;
  pthread_cleanup_pop(0);
}

__attribute__((noinline)) static void* IsCancelled(void* pipe) {
  free(malloc(712));
  Waits(((int*)pipe)[0]);
  return NULL;
}

__attribute__((noinline)) static void CleanUpAtExit(void* unused) {
  (void)unused;
  free(malloc(713));
  g_sink = g_sink + 1;
}

__attribute__((noinline)) static void Leaves(void) {
  pthread_cleanup_push(CleanUpAtExit, NULL);
  pthread_exit(NULL);
  pthread_cleanup_pop(0);
}

__attribute__((noinline)) static void* Exits(void* unused) {
  Leaves();
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rounds = atoi(argv[2]);
  char path[1000];
  snprintf(path, sizeof(path), "%s/libplugin_throwing.so", argv[1]);
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return 3;
  int (*catch_it)(void (*)(void (*)(int))) =
      (int (*)(void (*)(void (*)(int))))dlsym(plugin, "CatchWhatIsThrown");
  int caught = 0;
  for (int i = 0; i < rounds; ++i) {
    caught += catch_it(CallsBack);
    int ends[2];
    if (pipe(ends) != 0) return 4;
    pthread_t thread;
    pthread_create(&thread, NULL, IsCancelled, ends);
    if (i % 2 == 0) usleep(100); /* cancelled while it waits, or before */
    pthread_cancel(thread);
    void* result;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) return 5;
    close(ends[0]);
    close(ends[1]);
    pthread_create(&thread, NULL, Exits, NULL);
    pthread_join(thread, NULL);
  }
  if (caught != rounds) return 6;
  Expect(701, rounds, "Allocate ~AllocatesAtTheEnd ThrowFrom CallsBack CatchWhatIsThrown main");
  Expect(702, 3L * rounds, "Allocate ~AllocatesAtTheEnd ThrowFrom ThrowFrom");
  Expect(703, rounds, "CatchWhatIsThrown main");
  Expect(704, rounds, "CatchWhatIsThrown main");
  Expect(711, rounds, "CleanUp __pthread_cleanup_routine Waits IsCancelled");
  Expect(712, rounds, "IsCancelled");
  Expect(713, rounds, "CleanUpAtExit __pthread_cleanup_routine Leaves Exits");
  return 0;
}
