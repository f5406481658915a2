// leaks_in_children: a forked child loses 33 bytes, and so does one of its own 35; another child becomes this
// program again, which loses 44 there. With BECOMES_ANOTHER set
// so does this process at its end. The exit status is 0.

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void lose(size_t bytes) {
  volatile char* block = malloc(bytes);
  block[0] = 1;
}

static __attribute__((noinline)) void clear_the_stack(void) {
  char volatile room[4096];
  memset((char*)room, 0, sizeof(room));
}

int main(int argc, char** argv) {
  if (argc > 1) {
    lose(44);
    clear_the_stack();
    return 0;
  }
  if (fork() == 0) {
    lose(33);
    if (fork() == 0) {
      lose(35);
      clear_the_stack();
      exit(0);
    }
    wait(NULL);
    clear_the_stack();
    exit(0);
  }
  if (fork() == 0) {
    execl("/proc/self/exe", argv[0], "again", (char*)NULL);
    _exit(1);
  }
  while (wait(NULL) > 0) {
  }
  if (getenv("BECOMES_ANOTHER") != NULL) execl("/proc/self/exe", argv[0], "again", (char*)NULL);
  return 0;
}
