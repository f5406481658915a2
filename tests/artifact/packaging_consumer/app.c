/* Loses one block, in a function whose name the report has to show. */
#include <stdlib.h>

void *volatile g_sink;

__attribute__((noinline)) void lose_a_block(void) {
  g_sink = malloc(123);
  g_sink = NULL;
}

int main(void) {
  lose_a_block();
  return 0;
}
