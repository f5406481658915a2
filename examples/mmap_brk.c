// mmap_brk: memory that a program takes from the kernel itself, past malloc.
//
// 4 MiB are mapped and grown to 8 MiB, 1 MiB is mapped and unmapped, the break is moved by
// 256 KiB, and 512 KiB of System V shared memory are attached, once for good. None of it is a heap
// block: it is listed with the mappings, and the totals of the heap stay at one block.
//
//   expect: /totals/allocations == 1
//   expect: mapping mmap at @mapped in MapAndGrow: calls == 1
//   expect: mapping mmap at @undone in MapAndUnmap: calls == 1, bytes == 1048576, live_bytes == 0
//   expect: mapping brk at @break in MoveTheBreak: calls == 1, bytes == 262144
//   expect: mapping brk at @break in MoveTheBreak: live_bytes == 262144
//   expect: mapping shm at @attached in AttachSharedMemory: calls == 2, bytes == 1048576
//   expect: mapping shm at @attached in AttachSharedMemory: live_bytes == 524288
//   expect: mapping live bytes of mmap in MapAndGrow == 8388608
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { kMiB = 1 << 20 };

enum { kReadWrite = PROT_READ | PROT_WRITE, kPrivate = MAP_PRIVATE | MAP_ANONYMOUS };

static int MapAndGrow(void) {
  char* area = mmap(NULL, 4 * kMiB, kReadWrite, kPrivate, -1, 0);  // @mapped
  if (area == MAP_FAILED) return 1;
  area[0] = 1;
  area = mremap(area, 4 * kMiB, 8 * kMiB, MREMAP_MAYMOVE);  // @grown
  if (area == MAP_FAILED) return 1;
  area[8 * kMiB - 1] = 1;
  return 0;
}

static int MapAndUnmap(void) {
  void* area = mmap(NULL, kMiB, kReadWrite, kPrivate, -1, 0);  // @undone
  return area == MAP_FAILED || munmap(area, kMiB) != 0;
}

static int MoveTheBreak(void) {
  char* area = sbrk(256 * 1024);  // @break
  if (area == (void*)-1) return 1;
  area[0] = 1;
  return 0;
}

static int AttachSharedMemory(void) {
  const int id = shmget(IPC_PRIVATE, kMiB / 2, IPC_CREAT | 0600);
  if (id < 0) return 1;
  int failures = 0;
  for (int i = 0; i < 2; ++i) {
    char* area = shmat(id, NULL, 0);  // @attached
    if (area == (void*)-1) {
      ++failures;
    } else if (i == 0) {
      shmdt(area);
    }
  }
  shmctl(id, IPC_RMID, NULL);
  return failures;
}

int main(void) {
  char* block = malloc(10);
  if (block == NULL) return 1;
  return MapAndGrow() + MapAndUnmap() + MoveTheBreak() + AttachSharedMemory();
}
