/* counting_shim: the tests' own count of what a program allocates, against which the counts of
 * memtrace are held.
 *
 * A preload library that counts the successful calls of the malloc family and passes them to the
 * next definition, glibc's or that of the program's allocator. No allocation of its own, nothing
 * shared with memtrace.
 * Put behind libmemtrace.so in LD_PRELOAD it counts the very calls that memtrace passes on, so
 * that equality is exact even for programs that no two times run alike.
 *
 * The counts live in a shared mapping of $COUNT_DIR/<program>.<pid>.<n> (n = 0, 1, ... for each
 * exec of the same program by the same process) and so outlive exec, _exit and SIGKILL. A fork
 * child counts for itself, from nothing. A vfork child shares its parent's counts, as it
 * shares its heap.
 *
 * An allocation is a successful malloc, calloc, aligned function or realloc; a free is a free of
 * a pointer other than NULL, or a realloc that took one. That is how Valgrind counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/tracees/counting_shim.h"

/* The next definitions, found at the first call. A dlsym that finds what it looks for does not
 * allocate in glibc 2.34 and later; should it, that call would recurse and be seen at once. */
#define NEXT(name)                                                     \
  ({                                                                   \
    static __typeof__(&name) next;                                     \
    if (__atomic_load_n(&next, __ATOMIC_ACQUIRE) == NULL) {            \
      __typeof__(&name) found = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
      __atomic_store_n(&next, found, __ATOMIC_RELEASE);                \
    }                                                                  \
    next;                                                              \
  })

static struct MemtraceCounts g_before_constructor;
static struct MemtraceCounts* g_counts = &g_before_constructor;

#define COUNT(field, by) \
  __atomic_fetch_add(&g_counts->field, (uint64_t)(by), __ATOMIC_RELAXED)

static void CountAllocation(uint64_t bytes) {
  COUNT(allocations, 1);
  COUNT(bytes, bytes);
}

void* malloc(size_t bytes) {
  void* block = NEXT(malloc)(bytes);
  if (block != NULL) {
    COUNT(mallocs, 1);
    CountAllocation(bytes);
  }
  return block;
}

void* calloc(size_t count, size_t bytes) {
  void* block = NEXT(calloc)(count, bytes);
  if (block != NULL) {
    COUNT(callocs, 1);
    CountAllocation(count * bytes);
  }
  return block;
}

/* For realloc and reallocarray: a call of realloc by its name would go to the first library. */
static void* CountedRealloc(void* old, size_t bytes) {
  void* block = NEXT(realloc)(old, bytes);
  if (block != NULL) {
    COUNT(reallocs, 1);
    CountAllocation(bytes);
    if (old != NULL) COUNT(frees, 1);
  } else if (old != NULL && bytes == 0) {
    COUNT(frees, 1); /* glibc's: it frees and returns NULL */
  }
  return block;
}

void* realloc(void* old, size_t bytes) { return CountedRealloc(old, bytes); }

void* reallocarray(void* old, size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  return CountedRealloc(old, total);
}

static void* CountAligned(void* block, size_t bytes) {
  if (block != NULL) {
    COUNT(aligned, 1);
    CountAllocation(bytes);
  }
  return block;
}

void* memalign(size_t alignment, size_t bytes) {
  return CountAligned(NEXT(memalign)(alignment, bytes), bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  return CountAligned(NEXT(aligned_alloc)(alignment, bytes), bytes);
}

int posix_memalign(void** result, size_t alignment, size_t bytes) {
  const int error = NEXT(posix_memalign)(result, alignment, bytes);
  if (error == 0) CountAligned(*result, bytes);
  return error;
}

void* valloc(size_t bytes) { return CountAligned(NEXT(valloc)(bytes), bytes); }
void* pvalloc(size_t bytes) { return CountAligned(NEXT(pvalloc)(bytes), bytes); }

void free(void* block) {
  if (block != NULL) COUNT(frees, 1);
  NEXT(free)(block);
}

static char g_directory[3072];

/* Not getenv: bash and others have their own, which is not ready when constructors run. */
static void ReadDirectory(void) {
  for (char** entry = environ; entry != NULL && *entry != NULL; ++entry) {
    if (strncmp(*entry, "COUNT_DIR=", 10) == 0 && strlen(*entry + 10) < sizeof(g_directory)) {
      strcpy(g_directory, *entry + 10);
    }
  }
}

static const char* ProgramName(char* link, size_t bytes) {
  const ssize_t length = readlink("/proc/self/exe", link, bytes - 1);
  if (length <= 0) return "unknown";
  link[length] = 0;
  const char* slash = strrchr(link, '/');
  return slash != NULL ? slash + 1 : link;
}

static void UseOwnCounts(void) {
  static struct MemtraceCounts unnamed; /* where the counts go that cannot be written */
  if (g_directory[0] == 0) return;
  g_counts = &unnamed;
  char path[4096], link[1024];
  const char* program = ProgramName(link, sizeof(link));
  for (int n = 0; n < 1000; ++n) {
    snprintf(path, sizeof(path), "%s/%s.%d.%d", g_directory, program, (int)getpid(), n);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return;
    if (ftruncate(fd, sizeof(struct MemtraceCounts)) == 0) {
      void* counts = mmap(NULL, sizeof(struct MemtraceCounts), PROT_READ | PROT_WRITE, MAP_SHARED,
                          fd, 0);
      if (counts != MAP_FAILED) g_counts = counts;
    }
    close(fd);
    return;
  }
}

__attribute__((constructor)) static void Start(void) {
  const int saved_errno = errno;
  ReadDirectory();
  UseOwnCounts();
  if (g_counts != &g_before_constructor) {
    COUNT(allocations, g_before_constructor.allocations);
    COUNT(frees, g_before_constructor.frees);
    COUNT(bytes, g_before_constructor.bytes);
    COUNT(mallocs, g_before_constructor.mallocs);
    COUNT(callocs, g_before_constructor.callocs);
    COUNT(reallocs, g_before_constructor.reallocs);
    COUNT(aligned, g_before_constructor.aligned);
  }
  pthread_atfork(NULL, NULL, UseOwnCounts);
  errno = saved_errno;
}
