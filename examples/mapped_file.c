// mapped_file: pages of a file are shared until they are written.
//
// A private mapping of a file of 64 pages. Reading brings pages in that the kernel has in its cache
// already, several with one fault; writing makes a copy of each page, a fault each: 64. They belong
// to the mmap of the program, not to any block of the heap.
//
//   expect faults: /faults/by_memory/mapping/minor >= 65
//   expect faults: /faults/by_memory/mapping/minor <= 128
//   expect faults: /phases/1/minor_faults == 64
//   expect: mapping mmap at @map in main: calls == 1
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memtrace.h"

enum { kPages = 64, kPage = 4096 };

int main(void) {
  char name[] = "/tmp/mapped_file_XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0) return 1;
  unlink(name);
  static char page[kPage];
  memset(page, 7, sizeof(page));
  for (int i = 0; i < kPages; ++i) {
    if (write(fd, page, sizeof(page)) != sizeof(page)) return 1;
  }
  volatile char* map = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);  // @map
  close(fd);
  if (map == MAP_FAILED) return 1;
  int sum = 0;
  memtrace_phase_begin("read");
  for (int i = 0; i < kPages; ++i) sum += map[i * kPage];
  memtrace_phase_end("read");
  memtrace_phase_begin("write");
  for (int i = 0; i < kPages; ++i) map[i * kPage] = 1;
  memtrace_phase_end("write");
  return sum != 7 * kPages;
}
