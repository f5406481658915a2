/* heap_growth [aligned]: makes libc's allocator take memory from the kernel in each way it has.
 *
 * The main heap grows by brk to about 8 MiB, a second thread's arena to about 8 MiB (with `aligned` all of that by
 * posix_memalign), and three blocks of 1 MiB get mappings of their own, of which one is freed. All is kept to the end.
 * Prints, from /proc/self/maps read when all is done: the bytes of [heap], and how much of the heap blocks were
 * asked for in main, in the thread and in mapped blocks. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBlocks = 8192, kBlockBytes = 1000, kMappedBytes = 1 << 20 };

static char* volatile g_sink;
static int g_aligned;
static char g_maps[1 << 18];

__attribute__((noinline)) static void GrowTheHeap(void) {
  for (int i = 0; i < kBlocks; ++i) {
    void* block = NULL;
    if (!g_aligned) {
      block = malloc(kBlockBytes);
    } else if (posix_memalign(&block, sizeof(void*), kBlockBytes) != 0) {
      abort();
    }
    g_sink = block;
    g_sink[0] = 1;
  }
}

static void* GrowAnArena(void* unused) {
  GrowTheHeap();
  return unused;
}

__attribute__((noinline)) static void MapBlocks(void) {
  char* freed = malloc(kMappedBytes);
  g_sink = malloc(kMappedBytes);
  g_sink = malloc(kMappedBytes);
  free(freed);
}

static long HeapBytes(void) {
  const int fd = open("/proc/self/maps", O_RDONLY);
  size_t size = 0;
  ssize_t got;
  while ((got = read(fd, g_maps + size, sizeof(g_maps) - 1 - size)) > 0) size += (size_t)got;
  close(fd);
  long bytes = 0;
  for (char* line = g_maps; line != NULL && *line != 0;) {
    char* next = strchr(line, '\n');
    if (next != NULL) *next++ = 0;
    unsigned long start, end;
    if (strstr(line, "[heap]") != NULL && sscanf(line, "%lx-%lx", &start, &end) == 2) {
      bytes += (long)(end - start);
    }
    line = next;
  }
  return bytes;
}

int main(int argc, char** argv) {
  g_aligned = argc > 1 && strcmp(argv[1], "aligned") == 0;
  pthread_t thread;
  pthread_create(&thread, NULL, GrowAnArena, NULL);
  pthread_join(thread, NULL);
  GrowTheHeap();
  MapBlocks();
  char line[100];
  const int length = snprintf(line, sizeof(line), "%ld\n", HeapBytes());
  return write(1, line, (size_t)length) == length ? 0 : 1;
}
