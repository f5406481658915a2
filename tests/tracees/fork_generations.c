// A child of a child of a child: the last of them touches 256 pages for the first time,
// says its pid, and all end well.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kGenerations = 16 };

int main(void) {
  for (int i = 0; i < kGenerations; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      int status = 1;
      waitpid(child, &status, 0);
      _exit(status == 0 ? 0 : 1);
    }
    free(malloc(100));
  }
  char* pages = malloc(1 << 20);
  memset(pages, 1, 1 << 20);
  printf("%d\n", (int)getpid());
  fflush(stdout);
  free(pages);
  _exit(0);
}
