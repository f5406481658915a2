// Preloaded into `memtrace report` by engine_command_test: stops at a read in the middle of a trace
// until the test lets it go on, so that no test depends on how fast anything is.
//
//   STALL_AT    the how manieth read of more than a page waits
//   STALL_DIR   the file `reached` is made there, and `go` is waited for; at the end `reads` has how many there were

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_int g_reads;

static void Stall(size_t size) {
  const char* at = getenv("STALL_AT");
  const char* directory = getenv("STALL_DIR");
  if (size <= 4096 || at == NULL || directory == NULL) return;
  if (atomic_fetch_add(&g_reads, 1) + 1 != atoi(at)) return;
  char path[4096];
  snprintf(path, sizeof(path), "%s/reached", directory);
  close(open(path, O_WRONLY | O_CREAT, 0600));
  snprintf(path, sizeof(path), "%s/go", directory);
  while (access(path, F_OK) != 0) nanosleep(&(struct timespec){0, 5000000}, NULL);
}

__attribute__((destructor)) static void TellReads(void) {
  const char* directory = getenv("STALL_DIR");
  char path[4096];
  if (directory == NULL || atomic_load(&g_reads) == 0) return;
  snprintf(path, sizeof(path), "%s/reads", directory);
  FILE* file = fopen(path, "we");
  if (file == NULL) return;
  fprintf(file, "%d\n", atomic_load(&g_reads));
  fclose(file);
}

ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "pread");
  Stall(size);
  return real(fd, buffer, size, offset);
}

ssize_t pread64(int fd, void* buffer, size_t size, off_t offset) {
  return pread(fd, buffer, size, offset);
}
