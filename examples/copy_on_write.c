// copy_on_write: after a fork both processes have the same pages, until one of them writes.
//
// The parent writes 512 pages and forks. The child reads all of them, which costs nothing, and writes
// to 200: a fault for each copy. Its trace has the faults; the blocks are its parent's, so that they
// are told as memory of the allocator.
//
//   expect: site at @block in main: allocations == 1
//   expect faults: site at @block in main: minor_faults >= 513
//   expect child faults: /phases/0/minor_faults <= 8
//   expect child faults: /phases/1/minor_faults >= 200
//   expect child faults: /phases/1/minor_faults <= 204
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memtrace.h"

enum { kPages = 512, kWritten = 200, kPage = 4096 };

int main(void) {
  volatile char* block = malloc(kPages * kPage);  // @block
  if (block == NULL) return 1;
  memset((char*)block, 1, kPages * kPage);
  const pid_t child = fork();
  if (child == 0) {
    int sum = 0;
    memtrace_phase_begin("read");
    for (int i = 0; i < kPages; ++i) sum += block[i * kPage];
    memtrace_phase_end("read");
    memtrace_phase_begin("write");
    for (int i = 0; i < kWritten; ++i) block[i * kPage] = 2;
    memtrace_phase_end("write");
    exit(sum != kPages);
  }
  int status = 0;
  return waitpid(child, &status, 0) != child || status != 0;
}
