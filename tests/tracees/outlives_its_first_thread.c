/* main() ends by pthread_exit(); the thread that is left takes 40 MiB, maps a file, and ends the process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void* volatile g_kept[40];

static int HasEnded(int tid) {
  char path[64], state[64] = "";
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
  FILE* const stat = fopen(path, "r");
  if (stat == NULL) return 1;
  const int read = fscanf(stat, "%*s %*s %63s", state);
  fclose(stat);
  return read != 1 || state[0] == 'Z';
}

static void* GoOn(void* unused) {
  (void)unused;
  while (!HasEnded(getpid())) usleep(1000);
  for (int i = 0; i < 40; ++i) {
    g_kept[i] = malloc(1 << 20);
    if (g_kept[i] == NULL) exit(9);
    memset(g_kept[i], 1, 1 << 20);
    usleep(1000);
  }
  const int file = open("/bin/sh", O_RDONLY);
  if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) exit(9);
  exit(0);
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, GoOn, NULL) != 0) return 9;
  pthread_exit(NULL);
}
