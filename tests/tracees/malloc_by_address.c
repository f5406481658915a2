// Not position-independent, and takes the address of malloc: the loader gives everybody
// who asks for it this program's own PLT entry, as in node. It is no malloc of its own.
#include <stdio.h>
#include <stdlib.h>

static void* (*volatile allocate)(size_t);

int main(void) {
  allocate = malloc;  // in code, so that the linker needs an address of it beforehand
  char* text = allocate(100);
  snprintf(text, 100, "allocated by address");
  puts(text);
  free(text);
  return 0;
}
