/* plugins_come_and_go: two plugins in turns, at the same addresses, and each of them twice in a
 * row; threads allocate meanwhile.
 *
 *   plugins_come_and_go DIRECTORY ROUNDS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "expect.h"

int g_round;
static atomic_bool g_done;
static atomic_long g_worker_blocks;
static volatile int g_sink;

__attribute__((noinline)) static void Churn(void) {
  for (int i = 0; i < 50; ++i) {
    free(malloc(7000));
    g_sink = g_sink + 1;
  }
}

__attribute__((noinline)) static void* Worker(void* unused) {
  long blocks = 0;
  while (!g_done) {
    Churn();
    blocks += 50;
  }
  g_worker_blocks += blocks;
  return unused;
}

__attribute__((noinline)) static void Use(void* (*allocate)(size_t)) {
  for (int i = 0; i < 3; ++i) {
    free(allocate(10000 + (size_t)g_round));
    g_sink = g_sink + 1;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rounds = atoi(argv[2]);
  pthread_t workers[2];
  for (int i = 0; i < 2; ++i) pthread_create(&workers[i], NULL, Worker, NULL);
  char path[2][1000];
  snprintf(path[0], sizeof(path[0]), "%s/libplugin_red.so", argv[1]);
  snprintf(path[1], sizeof(path[1]), "%s/libplugin_blue.so", argv[1]);
  void* last = NULL;
  int again = 0;
  for (g_round = 0; g_round < rounds; ++g_round) {
    const int which = g_round / 2 % 2; /* red, red, blue, blue, ... */
    void* plugin = dlopen(path[which], RTLD_NOW);
    if (plugin == NULL) return 3;
    void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(plugin, "Allocate");
    Use(allocate);
    again += (void*)allocate == last;
    last = (void*)allocate;
    if (dlclose(plugin) != 0) return 4;
    const char* colour = which == 0 ? "Red" : "Blue";
    char functions[200];
    snprintf(functions, sizeof(functions), "%sInner Allocate Use main", colour);
    Expect(10000 + (size_t)g_round, 3, functions);
    snprintf(functions, sizeof(functions), "%sInner %sLoaded", colour, colour);
    Expect(20000 + (size_t)g_round, 1, functions);
    snprintf(functions, sizeof(functions), "%sInner %sUnloaded", colour, colour);
    Expect(30000 + (size_t)g_round, 1, functions);
  }
  g_done = 1;
  for (int i = 0; i < 2; ++i) pthread_join(workers[i], NULL);
  Expect(7000, g_worker_blocks, "Churn Worker");
  Tell("again %d\n", again);
  return 0;
}
