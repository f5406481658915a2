// Calls every function that allocates, frees or maps, each with a size of its own, and
// says what it got: NAME ADDRESS SIZE ALIGNMENT; "free" and "munmap" are of what was got.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

// C23; only a preloaded library has them here.
__attribute__((weak)) void free_sized(void* block, size_t bytes);
__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t bytes);

static void Say(const char* name, const volatile void* address, size_t size, size_t alignment) {
  char line[200];
  const int bytes = snprintf(line, sizeof(line), "%s %#lx %zu %zu\n", name,
                             (unsigned long)(uintptr_t)address, size, alignment);
  if (write(1, line, (size_t)bytes) != bytes) _exit(1);
}

int main(int count, char** words) {
  void* blocks[9];
  Say("malloc", blocks[0] = malloc(1001), 1001, 0);
  Say("calloc", blocks[1] = calloc(17, 59), 1003, 0);
  Say("realloc", blocks[0] = realloc(blocks[0], 2002), 2002, 0);
  Say("reallocarray", blocks[2] = reallocarray(NULL, 15, 67), 1005, 0);
  if (posix_memalign(&blocks[3], 64, 1006) != 0) return 1;
  Say("posix_memalign", blocks[3], 1006, 64);
  Say("aligned_alloc", blocks[4] = aligned_alloc(128, 1024), 1024, 128);
  Say("memalign", blocks[5] = memalign(256, 1007), 1007, 256);
  Say("valloc", blocks[6] = valloc(1008), 1008, 4096);
  Say("pvalloc", blocks[7] = pvalloc(1009), 1009, 4096);
  Say("malloc", blocks[8] = malloc(3 << 20), 3 << 20, 0);  // has a mapping of its own
  for (int i = 0; i < 9; ++i) {
    Say("free", blocks[i], 0, 0);
    if (i == 1 && free_sized != NULL) {
      free_sized(blocks[i], 1003);
    } else if (i == 3 && free_aligned_sized != NULL) {
      free_aligned_sized(blocks[i], 64, 1006);
    } else {
      free(blocks[i]);
    }
  }
  const int kRead = PROT_READ | PROT_WRITE, kOwn = MAP_PRIVATE | MAP_ANONYMOUS;
  void* map = mmap(NULL, 5 << 12, kRead, kOwn, -1, 0);
  Say("mmap", map, 5 << 12, 0);
  void* big = mmap64(NULL, 6 << 12, kRead, kOwn, -1, 0);
  Say("mmap", big, 6 << 12, 0);
  const int file = open(words[count - 1], O_RDONLY);
  void* of_file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  Say("mmap", of_file, 4096, 0);
  map = mremap(map, 5 << 12, 50 << 12, MREMAP_MAYMOVE);
  Say("mremap", map, 50 << 12, 0);
  Say("munmap", map, 50 << 12, 0);
  munmap(map, 50 << 12);
  Say("munmap", big, 6 << 12, 0);
  munmap(big, 6 << 12);
  char* end = sbrk(7 << 12);
  Say("brk", end, 7 << 12, 0);
  if (brk(end + (9 << 12)) != 0) return 1;
  Say("brk", end + (7 << 12), 2 << 12, 0);
  const int segment = shmget(IPC_PRIVATE, 8 << 12, IPC_CREAT | 0600);
  void* shared = shmat(segment, NULL, 0);
  shmctl(segment, IPC_RMID, NULL);
  Say("shmat", shared, 8 << 12, 0);
  Say("shmdt", shared, 0, 0);
  shmdt(shared);
  return 0;
}
