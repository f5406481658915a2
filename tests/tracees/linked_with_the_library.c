// Needs libmemtrace.so by being linked with it. Says whether it runs in secure-execution mode.

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

int main(void) {
  for (int i = 0; i < 1000; ++i) free(malloc(100));
  printf("secure %lu\n", getauxval(AT_SECURE));
  return 0;
}
