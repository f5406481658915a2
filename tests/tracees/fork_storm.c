/* fork_storm CHILDREN [AT_ONCE]: forks many children, which allocate at once, each another
 * number of times, and says of each "child PID ALLOCATIONS\n" when all have ended. A child
 * counts in memory it shares with its parent. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracees/expect.h"

struct Told {
  int pid;
  unsigned allocations;
};

int main(int argc, char** argv) {
  const int children = argc > 1 ? atoi(argv[1]) : 100;
  const int at_once = argc > 2 ? atoi(argv[2]) : 16;
  struct Told* told = mmap(NULL, sizeof(struct Told) * (size_t)children, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (told == MAP_FAILED) return 1;
  char* inherited = malloc(1000);
  int running = 0, failed = 0;
  for (int i = 0; i < children || running > 0;) {
    if (i < children && running < at_once) {
      const pid_t child = fork();
      if (child < 0) return 1;
      if (child == 0) {
        free(inherited);
        for (int k = 0; k < 20 + i % 40; ++k) {
          void* block = malloc((size_t)(100 + k));
          if (k % 4 != 0) free(block);
          ++told[i].allocations;
        }
        _exit(0);
      }
      told[i++].pid = child;
      ++running;
      continue;
    }
    int status = 1;
    if (wait(&status) < 0) return 1;
    failed += status != 0;
    --running;
  }
  for (int i = 0; i < children; ++i) Tell("child %d %u\n", told[i].pid, told[i].allocations);
  return failed != 0;
}
