// descriptors_of_others forks N: while two threads allocate, forks N children, and says how many of them had a
// descriptor of a trace.
// descriptors_of_others looks N: looks N times for one in its own table, and says how often there was one.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int is_of_a_trace(int fd) {
  char path[64], target[512];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(path, target, sizeof(target) - 1);
  if (length <= 0) return 0;
  target[length] = '\0';
  return strstr(target, ".mtr") != NULL;
}

static int has_a_trace(void) {
  int found = 0;
  for (int fd = 0; fd < 20; ++fd) found |= is_of_a_trace(fd);
  for (int fd = 1000; fd < 1010; ++fd) found |= is_of_a_trace(fd);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int times = atoi(argv[2]);
  int found = 0;
  pthread_t thread;
  close(0);  // so that this is the lowest that is free
  for (int i = 0; i < 2; ++i) pthread_create(&thread, NULL, allocate, NULL);
  for (int i = 0; i < times; ++i) {
    if (strcmp(argv[1], "looks") == 0) {
      found += has_a_trace();
      continue;
    }
    const pid_t child = fork();
    if (child == 0) _exit(has_a_trace());
    int status = 0;
    waitpid(child, &status, 0);
    found += WEXITSTATUS(status);
    usleep(300);
  }
  printf("%d\n", found);
  fflush(stdout);
  _exit(0);
}
