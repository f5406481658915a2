// fork_child: a fork child inherits its parent's blocks and leaks its own.
//
// Each process has its own trace. The parent's tells of the 111 bytes, the child's of the 222; the
// child frees a block of its parent's, which is no error and no leak, and still live in the
// parent.
//
//   expect: leak 111 bytes in 1 block at @parent in main
//   expect: leak 333 bytes in 1 block at @inherited in main
//   expect: no leak in BeTheChild
//   expect child: leak 222 bytes in 1 block at @child in BeTheChild
//   expect child: no leak at @parent
//   expect child: no leak at @inherited
//   expect child: /totals/allocations == 1
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char* volatile g_block;

static void BeTheChild(char* inherited) {
  free(inherited);
  g_block = malloc(222);  // @child
}

int main(void) {
  char* inherited = malloc(333);  // @inherited
  const pid_t child = fork();
  if (child == 0) {
    BeTheChild(inherited);
    _exit(0);
  }
  g_block = malloc(111);  // @parent
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
