// leaks: two call sites that leak, the way mtrace(1) and valgrind --leak-check=full see them.
//
// One site calls malloc(100) in a loop and forgets each block, the other calls calloc(16, 16) once.
// A third site frees what it allocates and must not appear.
//
//   expect: leak 256 bytes in 1 block at @calloc in LeakOneTable
//   expect: leak 200 bytes in 2 blocks at @loop in LeakInALoop
//   expect: no leak in FreesItsBlock
//   expect: first leak is @calloc
//   expect: /totals/allocations == 4
//   expect: /totals/frees == 1
//   expect: /totals/live_bytes == 456
//   expect: /totals/live_blocks == 3
//   expect: /coverage/unordered_events == 0
//   expect: text "leaks\.c"
#include <mcheck.h>
#include <stdlib.h>
#include <string.h>

static void* volatile g_forgotten;

// How often is the caller's to say: a loop of a constant 2 would become two calls.
static void LeakInALoop(int times) {
  for (int i = 0; i < times; ++i) {
    g_forgotten = malloc(100);  // @loop
  }
}

static void LeakOneTable(void) {
  g_forgotten = calloc(16, 16);  // @calloc
  g_forgotten = NULL;
}

static void FreesItsBlock(void) {
  char* block = malloc(1000);
  memset(block, 0, 1000);
  free(block);
}

int main(void) {
  mtrace();  // does nothing unless MALLOC_TRACE is set and libc_malloc_debug.so is loaded
  LeakInALoop(2);
  LeakOneTable();
  FreesItsBlock();
  return 0;
}
