// give_back: memory that was given back to the kernel is faulted in once more.
//
// A block of 8 MiB is written; madvise(MADV_DONTNEED) gives its pages back, though the block stays
// allocated; half of it is written again. The heap is the same all the time, the faults are not:
// 2048 pages and the header's, then 1024. At the end half of the block is resident.
//
//   expect: /phases/1/minor_faults == 2048
//   expect: /phases/2/minor_faults == 1024
//   expect faults: site at @block in main: minor_faults == 3073
//   expect faults: site at @block in main: resident_bytes == 4202488
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "memtrace.h"

enum { kBytes = 8 << 20, kPage = 4096 };

static void Touch(volatile char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kPage) from[i] = 1;
}

int main(void) {
  char* block = malloc(kBytes);  // @block
  if (block == NULL) return 1;
  char* pages = (char*)(((uintptr_t)block + kPage) & ~(uintptr_t)(kPage - 1));
  Touch(block, 1);
  memtrace_phase_begin("warm up");  // what the calls themselves touch
  memtrace_phase_end("warm up");
  memtrace_phase_begin("first touch");
  Touch(pages, kBytes);
  memtrace_phase_end("first touch");
  madvise(pages, kBytes - kPage, MADV_DONTNEED);
  memtrace_phase_begin("second touch");
  Touch(pages, kBytes / 2);
  memtrace_phase_end("second touch");
  return 0;
}
