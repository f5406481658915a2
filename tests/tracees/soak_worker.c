/* soak_worker: works until SIGTERM with a live heap that does not grow: threads that come and go,
 * plugins that are loaded and unloaded, blocks that pass between threads. Whatever grows is not its own.
 *
 *   soak_worker DIRECTORY_OF_PLUGINS
 *
 * Prints at the end "ok", or what went wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLive = 2000, kThreadsAtOnce = 4 };

int g_round; /* the plugins want it */
static volatile sig_atomic_t g_done;
static _Atomic(char*) g_blocks[kLive]; /* any thread takes one out and puts another in */
static atomic_ulong g_wrong;
static pthread_key_t g_key;

static void Stop(int signal_number) {
  (void)signal_number;
  g_done = 1;
}

/* A block remembers its size, and that nobody wrote over it. */
static char* Make(unsigned random) {
  const size_t size = 16 + random % 1500;
  char* block = malloc(size);
  if (block == NULL) abort();
  memcpy(block, &size, sizeof(size));
  memset(block + sizeof(size), (int)(size & 0x7f), size - sizeof(size));
  return block;
}

static void Check(const char* block) {
  size_t size;
  memcpy(&size, block, sizeof(size));
  if (block[size - 1] != (char)(size & 0x7f)) ++g_wrong;
}

__attribute__((noinline)) static void Exchange(unsigned* random, int times) {
  for (int i = 0; i < times; ++i) {
    *random = *random * 1103515245 + 12345;
    char* block = atomic_exchange(&g_blocks[*random / 65536 % kLive], Make(*random >> 4));
    if (block == NULL) continue;
    Check(block);
    if (*random & 0x100000) {
      block = realloc(block, 3000); /* into another place, mostly */
      if (block == NULL) abort();
    }
    free(block);
  }
}

static void Late(void* block) {
  free(block);
  free(malloc(502));
}

static void* Short(void* seed) {
  unsigned random = (unsigned)(size_t)seed;
  pthread_setspecific(g_key, malloc(501));
  Exchange(&random, 100);
  return NULL;
}

static void* Long(void* seed) {
  unsigned random = (unsigned)(size_t)seed;
  while (!g_done) {
    Exchange(&random, 200);
    usleep(10000);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  mallopt(M_ARENA_MAX, 2); /* or arenas grow in number until each thread has met each */
  signal(SIGTERM, Stop);
  if (pthread_key_create(&g_key, Late) != 0) return 3;
  pthread_t lasting;
  if (pthread_create(&lasting, NULL, Long, (void*)77) != 0) return 3;
  for (size_t round = 0; !g_done; ++round) {
    pthread_t threads[kThreadsAtOnce];
    for (size_t i = 0; i < kThreadsAtOnce; ++i) {
      if (pthread_create(&threads[i], NULL, Short, (void*)(round * kThreadsAtOnce + i)) != 0) {
        return 3;
      }
    }
    char path[1000];
    snprintf(path, sizeof(path), "%s/libplugin_%s.so", argv[1], round / 2 % 2 ? "red" : "blue");
    void* plugin = dlopen(path, RTLD_NOW);
    if (plugin == NULL) return 4;
    void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(plugin, "Allocate");
    free(allocate(1000));
    if (dlclose(plugin) != 0) return 4;
    for (int i = 0; i < kThreadsAtOnce; ++i) pthread_join(threads[i], NULL);
    usleep(20000);
  }
  pthread_join(lasting, NULL);
  for (int i = 0; i < kLive; ++i) {
    if (g_blocks[i] != NULL) Check(g_blocks[i]);
    free(g_blocks[i]);
  }
  puts(g_wrong == 0 ? "ok" : "blocks were written over");
  return 0;
}
