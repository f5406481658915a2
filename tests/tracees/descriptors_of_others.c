// descriptors_of_others forks N: while two threads allocate and two map, forks N children, and says how many of them
// had a descriptor of a trace, or of a file of /proc, of which the program opens none.
// descriptors_of_others looks N: looks N times for one in its own table, and says how often there was one.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 64

static void* allocate(void* unused) {
  (void)unused;
  void* blocks[BLOCKS] = {NULL};
  for (unsigned i = 0;; i = (i + 1) % BLOCKS) {
    free(blocks[i]);
    blocks[i] = malloc(16 + i);
  }
  return NULL;
}

static void* map(void* unused) {
  (void)unused;
  for (;;) munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
  return NULL;
}

static int is_the_tracers(int fd, int or_of_proc) {
  char path[64], target[512];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(path, target, sizeof(target) - 1);
  if (length <= 0) return 0;
  target[length] = '\0';
  return strstr(target, ".mtr") != NULL || (or_of_proc && strncmp(target, "/proc/", 6) == 0);
}

static int has_the_tracers(int or_of_proc) {
  int found = 0;
  for (int fd = 0; fd < 20; ++fd) found |= is_the_tracers(fd, or_of_proc);
  for (int fd = 1000; fd < 1010; ++fd) found |= is_the_tracers(fd, or_of_proc);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int times = atoi(argv[2]);
  int found = 0;
  pthread_t thread;
  close(0);  // so that this is the lowest that is free
  for (int i = 0; i < 2; ++i) pthread_create(&thread, NULL, allocate, NULL);
  for (int i = 0; i < 2 && strcmp(argv[1], "forks") == 0; ++i) pthread_create(&thread, NULL, map, NULL);
  for (int i = 0; i < times; ++i) {
    if (strcmp(argv[1], "looks") == 0) {
      found += has_the_tracers(0);
      continue;
    }
    const pid_t child = fork();
    if (child == 0) _exit(has_the_tracers(1));
    int status = 0;
    waitpid(child, &status, 0);
    found += WEXITSTATUS(status);
    usleep(300);
  }
  printf("%d\n", found);
  fflush(stdout);
  _exit(0);
}
