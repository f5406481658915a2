/* A plugin of which there are two builds, red and blue: laid out alike, so that one is mapped
 * where the other was, but with other names and other frames. It allocates in its constructor,
 * in its destructor, and when it is called. */
#include <stddef.h>
#include <stdlib.h>

#define PASTE(a, b) a##b
#define NAMED(colour, name) PASTE(colour, name)
#define INNER NAMED(COLOUR, Inner)
#define LOADED NAMED(COLOUR, Loaded)
#define UNLOADED NAMED(COLOUR, Unloaded)

extern int g_round; /* the program's */
static volatile char g_sink;
static void* g_block;

__attribute__((noinline)) void* INNER(size_t bytes) {
  volatile char frame[FRAME];
  frame[0] = 1;
  void* block = malloc(bytes);
  g_sink = frame[0];
  return block;
}

__attribute__((visibility("default"), noinline)) void* Allocate(size_t bytes) {
  volatile char frame[2 * FRAME];
  frame[0] = 1;
  void* block = INNER(bytes);
  g_sink = frame[0];
  return block;
}

__attribute__((constructor, noinline)) static void LOADED(void) {
  g_block = INNER(20000 + (size_t)g_round);
  g_sink = 1;
}

__attribute__((destructor, noinline)) static void UNLOADED(void) {
  free(g_block);
  free(INNER(30000 + (size_t)g_round));
  g_sink = 2;
}
