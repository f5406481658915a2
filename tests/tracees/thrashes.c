/* thrashes: reads a file of so many MiB through a mapping, page by page in no order, so many times.
 *
 *   thrashes FILE MIB TIMES
 *
 * In a memory cgroup that is smaller than the file its pages have to come from disk each time. A block
 * is allocated and freed now and then; the heap stays as it is. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096 };

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t pages = (size_t)atoi(argv[2]) << 8;
  const int times = atoi(argv[3]);
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0) return 1;
  static char page[kPage];
  memset(page, 7, sizeof(page));
  for (size_t i = 0; i < pages; ++i) {
    if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page)) return 1;
  }
  if (fsync(fd) != 0) return 1;
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  volatile char* map = mmap(NULL, pages * kPage, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED || madvise((void*)map, pages * kPage, MADV_RANDOM) != 0) return 1;
  long sum = 0;
  void* keep = malloc(1000);
  for (int time = 0; time < times; ++time) {
    for (size_t i = 0; i < pages; ++i) {
      sum += map[(i * 769 % pages) * kPage];
      if (i % 16 == 0) free(malloc(100));
    }
  }
  free(keep);
  unlink(argv[1]);
  return sum != (long)(7 * pages * (size_t)times);
}
