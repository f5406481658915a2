// A program that makes no allocation, nor does the libc that it is linked to for it. It waits for the
// signal that ends it.

#include <unistd.h>

int main(void) {
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  for (;;) pause();
}
