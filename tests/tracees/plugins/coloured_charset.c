/* A character set of glibc's iconv of which there are two builds, laid out alike, as with
 * coloured_plugin.c. It allocates when it is loaded, and converts nothing. */
#include <gconv.h>
#include <stddef.h>
#include <stdlib.h>

#define PASTE(a, b) a##b
#define NAMED(colour, name) PASTE(colour, name)
#define INNER NAMED(COLOUR, CharsetInner)

static volatile char g_sink;

__attribute__((noinline)) void INNER(size_t bytes) {
  volatile char frame[FRAME];
  frame[0] = 1;
  free(malloc(bytes));
  g_sink = frame[0];
}

int gconv_init(struct __gconv_step* step) {
  volatile char frame[2 * FRAME];
  frame[0] = 1;
  /* Again: rules of a module are trusted when they were met again. */
  for (int i = 0; i < 3; ++i) INNER(BYTES);
  g_sink = frame[0];
  step->__min_needed_from = step->__max_needed_from = 1;
  step->__min_needed_to = step->__max_needed_to = 4;
  step->__stateful = 0;
  return __GCONV_OK;
}

int gconv(void) { return __GCONV_EMPTY_INPUT; }
