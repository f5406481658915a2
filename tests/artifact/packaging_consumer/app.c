/* Loses one block, in a function whose name the report has to show. */
#include <memtrace.h>
#include <stdlib.h>

void *volatile g_sink;

__attribute__((noinline)) void lose_a_block(void) {
  g_sink = malloc(123);
  g_sink = NULL;
}

int main(void) {
  memtrace_phase_begin("losing");
  lose_a_block();
  memtrace_phase_end("losing");
  return 0;
}
