// Cases of kept_by: what memory keeps that is not a block's own: mappings of all kinds, heaps of others,
// pages that cannot be read or written, room behind a block's size.

#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memtrace.h"
#include "tests/tracees/kept_by.h"

enum { kLargeBss = 20000 };
static void* volatile g_large_bss[kLargeBss];
extern char end[];  // of the .bss

// Past every library.
static void RawUnmap(void* address, size_t bytes) {
#ifdef __x86_64__
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"((long)SYS_munmap), "D"(address), "S"(bytes)
               : "rcx", "r11", "memory");
#else
  munmap(address, bytes);
#endif
}

// Is `address` in the mapping that is called [heap]?
static int HeapHas(const char* address) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  int has = 0;
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    char *rest, *begin = (char*)strtoul(line, &rest, 16), *behind = (char*)strtoul(rest + 1, &rest, 16);
    has |= strstr(rest, "[heap]") != NULL && begin <= address && address < behind;
  }
  if (maps != NULL) fclose(maps);
  return has;
}

static int OtherMappings(void) {
  void** anonymous = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  anonymous[7] = Block("reachable");
  void** shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared[9] = Block("reachable");
  FILE* const file = tmpfile();
  if (file == NULL || ftruncate(fileno(file), kPage) != 0) return 77;
  void** private = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
  private[11] = Block("reachable");  // and three pages behind it that nobody can read
  void** of_file = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  of_file[13] = Block("reachable");
  Lose();
  return 0;
}

static int Sparse(void) {
  const size_t bytes = (size_t)64 << 30;
  char* const sparse = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (sparse == MAP_FAILED) return 77;
  *(void**)(sparse + bytes / 2) = Block("reachable");
  Lose();
  return 0;
}

enum { kTebibytes = 16 };
static const size_t kTebibyte = (size_t)1 << 40;

// As a sanitizer's shadow, or a collector's heap. NULL: not here. Before Linux 6.7 each page that
// is not there is asked about.
static char* MapTebibytes(void) {
  struct utsname kernel;
  int major = 0, minor = 0;
  if (uname(&kernel) != 0 || sscanf(kernel.release, "%d.%d", &major, &minor) != 2 || major < 6 || (major == 6 && minor < 7))
    return NULL;
  char* const sparse = mmap(NULL, kTebibytes * kTebibyte, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return sparse == MAP_FAILED ? NULL : sparse;
}

static int Tebibytes(void) {
  char* const sparse = MapTebibytes();
  if (sparse == NULL) return 77;
  *(void**)sparse = Block("reachable");
  *(void**)(sparse + 7 * kTebibyte + 35 * kPage) = Block("reachable");
  *(void**)(sparse + kTebibytes * kTebibyte - kPage) = Block("reachable");
  Lose();
  return 0;
}

// As of a sanitizer's tables: nothing but two words far from each other is pointed to.
static int TebibyteEnds(void) {
  char* const sparse = MapTebibytes();
  if (sparse == NULL) return 77;
  static char* volatile ends[2];
  ends[0] = sparse + sizeof(void*);
  ends[1] = sparse + kTebibytes * kTebibyte - sizeof(void*);
  *(void**)sparse = Block("reachable");
  *(void**)(ends[1] - sizeof(void*)) = Block("reachable");
  Lose();
  return 0;
}

static int SparseShared(void) {
  const size_t bytes = (size_t)256 << 30;
  const int file = memfd_create("sparse", 0);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return 77;
  char* const sparse = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (sparse == MAP_FAILED) return 77;
  *(void**)sparse = Block("reachable");
  *(void**)(sparse + bytes / 2 + 5 * kPage) = Block("reachable");
  *(void**)(sparse + bytes - kPage) = Block("reachable");
  Lose();
  char path[80];
  snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)sparse, (unsigned long)(sparse + bytes));
  return open(path, O_RDONLY) >= 0 ? 0 : 77;
}

// Shared memory of huge pages, a file in memory and one without a name; as DPDK and SPDK have all of theirs. A
// scan takes none of those that are not there yet.
static int SharedHugePages(void) {
  enum { kHugePages = 3 };
  const int file = memfd_create("huge", MFD_HUGETLB);
  struct stat before, after;
  if (file < 0 || fstat(file, &before) != 0) return 77;
  const size_t huge = (size_t)before.st_blksize, bytes = kHugePages * huge;
  if (ftruncate(file, (off_t)bytes) != 0) return 77;
  // The machine has none to spare, or does not have any.
  char* const of_file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (of_file == MAP_FAILED) return 77;
  char* const anonymous = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (anonymous == MAP_FAILED) return 77;
  *(void**)(of_file + 5 * kPage + 64) = Block("reachable");
  *(void**)(of_file + bytes - sizeof(void*)) = Block("reachable");
  *(void**)(anonymous + huge / 2) = Block("reachable");
  Lose();
  CleanStack();
  if (fstat(file, &before) != 0 || memtrace_leak_check("while it runs", 0, 1) != 1 || fstat(file, &after) != 0) return 1;
  return before.st_blocks == after.st_blocks ? 0 : 1;
}

// A large block of libc's is a mapping of its own, and lies right beside what the program mapped last.
// Each has a stack of its own, and so a record.
static __attribute__((noinline)) void MapBesideBlocks(int count) {
  void** const mine = mmap(NULL, (count % 2 == 0 ? 1 : 40) * kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mine[0] = Block("reachable");
  const size_t bytes = ((size_t)3 << 20) + (size_t)count;
  Expect(bytes, "reachable");
  mine[1] = malloc(bytes);
  if (count > 1) MapBesideBlocks(count - 1);
  __asm__ volatile("");  // no jump takes the place of the call
}

static int BesideBlocks(void) {
  free(malloc(10));
  MapBesideBlocks(10);
  CleanStack();
  Lose();
  return 0;
}

// As of a garbage collector: full of pointers into itself.
static int OwnHeap(void) {
  const size_t count = (16 << 20) / sizeof(void*);
  void** const heap = mmap(NULL, count * sizeof(void*), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (size_t i = 0; i < count; ++i) heap[i] = &heap[count - 1 - i];
  heap[count / 2] = Block("reachable");
  Lose();
  return 0;
}

// Most of it, full of pointers; what is left is a list through all of it.
static int FreedHeap(void) {
  enum { kBlocks = 200000, kEvery = 200, kBytes = 5000 };
  void** const blocks = malloc(kBlocks * sizeof(void*));
  void** last = NULL;
  for (size_t i = 0; i < kBlocks; ++i) {
    const size_t bytes = i % kEvery == 0 ? kBytes : 200 + i * 7919 % 1000 * (i % 50 == 0);
    blocks[i] = malloc(bytes);
    for (size_t k = 0; k < bytes / sizeof(void*); ++k) {
      ((void**)blocks[i])[k] = i > 0 ? blocks[i - 1] : NULL;
    }
  }
  for (size_t i = 0; i < kBlocks; ++i) {
    if (i % kEvery != 0) {
      free(blocks[i]);
      continue;
    }
    Expect(kBytes, "reachable");
    memset(blocks[i], 0, kBytes);
    *(void**)blocks[i] = last;
    last = blocks[i];
  }
  memset(blocks, 0, kBlocks * sizeof(void*));
  free(blocks);
  in_bss = last;
  Lose();
  return 0;
}

// A block that grew over what malloc had split it off from, whose address libc keeps for ever: it
// points to the middle of what grew, and to nothing of the program's.
static NOINLINE void GrowOverRemainder(void) {
  char* const text = malloc(5000);
  in_bss = Block("reachable");
  free(text);
  char* line = malloc(1000);
  Expect(4900, "definite");
  line = realloc(line, 4900);
  memset(line, 'x', 4900);
  if (line != text) exit(1);  // glibc's malloc takes the free chunk before any other
  *(void**)line = Block("indirect");
}
static int Remainder(void) {
  GrowOverRemainder();
  CleanStack();
  Lose();
  return 0;
}

// Memory of the program's own amid libc's heap, and blocks behind it.
static int OwnBreak(void) {
  in_bss = Block("reachable");
  free(malloc(100000));
  char* const own = sbrk(1 << 20);
  if (own == (char*)-1) return 77;
  memset(own, 0x21, 1 << 20);
  void** at = in_bss;
  const size_t bytes = g_next++;
  for (int i = 0; i < 500; ++i) {
    Expect(bytes, "reachable");
    at = *at = calloc(1, bytes);
    free(malloc(3000));
  }
  Lose();
  return 0;
}

// Where the break cannot grow malloc takes other memory, and what was freed there keeps nothing. In the
// first of it, in what came later and in the last.
enum { kFreed = 600, kFilled = 2000 };
static void* volatile g_between[kFreed];
static void* volatile g_filled[kFilled];
static NOINLINE void LoseByFreeing(void) {
  struct {
    char before[304];
    void* block;
    char after[304];
  }* freed[kFreed];
  for (int i = 0; i < kFreed; ++i) {
    freed[i] = malloc(sizeof(*freed[i]));
    g_between[i] = malloc(700);  // so that they are not one free chunk
  }
  const size_t bytes = g_next++;
  for (int i = 0; i < kFreed; ++i) {
    Expect(bytes, "definite");
    freed[i]->block = calloc(1, bytes);
  }
  in_bss = Block("reachable");
  *(void**)in_bss = Block("reachable");
  for (int i = 0; i < kFreed; ++i) free(freed[i]);
  memset(freed, 0, sizeof(freed));
}
static int BlockedBreak(void) {
  char* const heap_end = (char*)(((uintptr_t)sbrk(0) + kPage - 1) & -(uintptr_t)kPage);
  if (mmap(heap_end, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != heap_end) return 77;
  for (int i = 0; i < kFilled; ++i) g_filled[i] = malloc(1000);
  if (sbrk(0) > (void*)heap_end) return 77;
  // The program's own, beside it.
  void** const own = mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  own[1] = Block("reachable");
  LoseByFreeing();
  CleanStack();
  Lose();
  return 0;
}

// And in one mapping with it, which is called [heap].
static int HeapBehindBss(void) {
  char* const last = (char*)((uintptr_t)(end - 1) & -(uintptr_t)kPage);
  g_large_bss[100] = Block("reachable");
  g_large_bss[kLargeBss - kPage / sizeof(void*)] = Block("reachable");
  // Changed and changed back, a page may be one with what is behind it.
  if (mprotect(last, kPage, PROT_READ) != 0 || mprotect(last, kPage, PROT_READ | PROT_WRITE) != 0) return 77;
  free(malloc(100000));
  Lose();
  return HeapHas(last) ? 0 : 77;
}

// By the program, where libc has a block now.
static int MappedBefore(void) {
  const size_t bytes = 8 << 20, size = bytes - 8 * kPage, small = g_next++;
  static void** volatile keep[3];
  for (int i = 0; i < 3; ++i) {
    char* const old =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (i == 0) munmap(old, bytes);
    if (i == 1) RawUnmap(old, bytes);
    if (i == 2) mremap(old, bytes, 4 * bytes, MREMAP_MAYMOVE);
    Expect(size, "reachable");
    keep[i] = malloc(size);
    if ((char*)keep[i] > old + bytes || (char*)keep[i] < old) printf("elsewhere\n");
    Expect(small, "reachable");
    keep[i][size / 16] = calloc(1, small);
  }
  Lose();
  return 0;
}

static int GuardPages(void) {
  char* const pages =
      mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + kPage, kPage, PROT_NONE);
  *(void**)pages = Block("reachable");
  *(void**)(pages + 2 * kPage) = Block("reachable");
  // Within a block, as a stack of a coroutine has one.
  Expect(5 * kPage, "reachable");
  char* const block = in_bss = aligned_alloc(kPage, 5 * kPage);
  *(void**)block = Block("reachable");
  *(void**)(block + 4 * kPage) = Block("reachable");
  mprotect(block + 2 * kPage, kPage, PROT_NONE);
  Lose();
  return 0;
}

// Memory that fork children do not get: a scan sees it, and they do not get it behind a scan
// either.
static int KeptFromForks(void) {
  const size_t bytes = 64 * kPage;
  char* const pages =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (madvise(pages + kPage, bytes - 2 * kPage, MADV_DONTFORK) != 0) return 77;
  *(void**)(pages + 5 * kPage) = Block("reachable");
  *(void**)(pages + bytes - kPage - 8) = Block("reachable");
  *(void**)(pages + bytes - 8) = Block("reachable");
  // Nobody points to this one but the list of what is lent.
  Expect(64 * kPage, "definite");
  char* volatile lost = aligned_alloc(kPage, 64 * kPage);
  if (madvise(lost, 64 * kPage, MADV_DONTFORK) != 0) return 77;
  lost = NULL;
  CleanStack();
  memtrace_leak_check("while it runs", 0, 1);
  const pid_t child = fork();
  if (child == 0) {
    unsigned char states[64];
    const int has_ends = mincore(pages, kPage, states) == 0 &&
                         mincore(pages + bytes - kPage, kPage, states) == 0;
    int has_others = 0;
    for (size_t at = kPage; at < bytes - kPage; at += kPage) {
      has_others += mincore(pages + at, kPage, states) == 0;
    }
    _exit(has_ends && has_others == 0 ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  Lose();
  return 0;
}

static int ReadOnly(void) {
  // Protected when it was filled: what a global variable points to, and what that leads to.
  Expect(3 * kPage + 8, "reachable");
  char* const block = in_bss = aligned_alloc(kPage, 3 * kPage + 8);
  *(void**)block = Block("reachable");
  *(void**)(block + 2 * kPage) = Block("reachable");
  mprotect(block, 2 * kPage, PROT_READ);
  mprotect(block + 2 * kPage, kPage, PROT_READ | PROT_EXEC);
  Expect(1 << 20, "reachable");
  char* const large = in_data = malloc(1 << 20);
  *(void**)(large + 3 * kPage) = Block("reachable");
  mprotect(large + 3 * kPage - 16, 9 * kPage, PROT_READ);
  // Nobody points to this one: that it cannot be written makes it no root.
  Expect(5 * kPage + 8, "definite");
  char* volatile lost = aligned_alloc(kPage, 5 * kPage + 8);
  *(void**)lost = Block("indirect");
  mprotect(lost, kPage, PROT_READ);
  lost = NULL;
  // Of the program's own memory as much is a root as it says.
  char* const pages =
      mmap(NULL, 256 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(void**)pages = Block("reachable");
  *(void**)(pages + 8) = Block("definite");
  *(void**)(pages + 100 * kPage) = Block("definite");
  mprotect(pages, 256 * kPage, PROT_READ);
  memtrace_root_region(pages, 8);
  return 0;
}

// Behind what was asked for.
static int UsableSize(void) {
  char* const block = in_bss = Block("reachable");
  const size_t usable = malloc_usable_size(block);
  if (usable / 8 == (g_next - 1) / 8) return 77;
  ((void**)block)[usable / 8 - 1] = Block("reachable");
  CleanStack();
  Lose();
  return 0;
}

const struct Case kMappingsCases[] = {
    {"mappings", OtherMappings},
    {"sparse", Sparse},
    {"sparse_shared", SparseShared},
    {"tebibytes", Tebibytes},
    {"tebibyte_ends", TebibyteEnds},
    {"shared_huge_pages", SharedHugePages},
    {"beside_blocks", BesideBlocks},
    {"own_heap", OwnHeap},
    {"freed_heap", FreedHeap},
    {"remainder", Remainder},
    {"own_break", OwnBreak},
    {"blocked_break", BlockedBreak},
    {"heap_behind_bss", HeapBehindBss},
    {"mapped_before", MappedBefore},
    {"guard_pages", GuardPages},
    {"kept_from_forks", KeptFromForks},
    {"read_only", ReadOnly},
    {"usable_size", UsableSize},
    {NULL, NULL},
};
