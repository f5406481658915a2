// starts_detached PROGRAM NAME: becomes PROGRAM, which it calls NAME, from a mount of its own that is
// attached nowhere, as crun starts itself: the kernel has no path for its file. Exits with 77 where
// that may not be done.

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TREE 428  // of Linux 5.2: headers of an older libc have no name for it

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int kClone = 1;
  long fd = syscall(OPEN_TREE, AT_FDCWD, argv[1], kClone | O_CLOEXEC);
  if (fd < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
    fd = syscall(OPEN_TREE, AT_FDCWD, argv[1], kClone | O_CLOEXEC);
  }
  if (fd < 0) {
    perror("open_tree");
    return 77;
  }
  fexecve((int)fd, argv + 2, environ);
  perror(argv[1]);
  return 1;
}
