/* nesting_allocator: an allocator whose functions call each other by their exported names.
 *
 * As Electric Fence's do: calloc calls malloc, realloc malloc and free, the aligned ones each
 * other. Preloaded behind libmemtrace.so these calls come to that first. Each way to call is here:
 * within a function, and as the last thing of one, which is a jump. calloc and realloc call
 * nesting_hook in their midst, if it is set.
 *
 * What it keeps of its own, if nesting_keep() was called: a table that it takes there and gives back
 * within the next free(), and a record that it takes within each malloc of 1999 bytes and gives back
 * in nesting_forget().
 *
 * Blocks of a power of two bytes, all aligned to as much (of 16 bytes to 64 KiB); what is freed is
 * given out again at once. Larger ones are never given out again. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kArenaBytes = 1 << 28, kPage = 4096, kClasses = 13, kUnit = 16 };

void (*nesting_hook)(void);

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static char* g_arena;
static size_t g_used;
static void* g_free[kClasses];               /* each leads to the next */
static uint8_t g_class[kArenaBytes / kUnit]; /* 1 more than the class, where a block begins */

static unsigned ClassOf(size_t bytes) {
  unsigned class = 0;
  while (class < kClasses && ((size_t)kUnit << class) < bytes) ++class;
  return class;
}

static void* Take(size_t bytes) {
  const unsigned class = ClassOf(bytes);
  void* block = NULL;
  pthread_mutex_lock(&g_lock);
  if (g_arena == NULL) {
    g_arena = mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (class < kClasses && g_free[class] != NULL) {
    block = g_free[class];
    g_free[class] = *(void**)block;
  } else if (g_arena != MAP_FAILED && bytes < kArenaBytes / 2) {
    const size_t size =
        class < kClasses ? (size_t)kUnit << class : (bytes + kPage - 1) / kPage * kPage;
    const size_t alignment = class < kClasses ? size : (size_t)kUnit << (kClasses - 1);
    const uintptr_t at = ((uintptr_t)g_arena + g_used + alignment - 1) / alignment * alignment;
    const size_t used = at + size - (uintptr_t)g_arena;
    if (used <= kArenaBytes) {
      g_used = used;
      block = (void*)at;
      g_class[((char*)block - g_arena) / kUnit] = (uint8_t)(class + 1);
    }
  }
  pthread_mutex_unlock(&g_lock);
  if (block == NULL) errno = ENOMEM;
  return block;
}

static unsigned ClassAt(void* block) { return g_class[((char*)block - g_arena) / kUnit] - 1u; }

static void CallHook(void) {
  void (*const hook)(void) = nesting_hook;
  if (hook != NULL) hook();
}

static int g_keeps, g_record_count;
static void* g_records[100];
static void* g_table;

/* By name: gcc makes a direct call of what a function calls itself. */
__attribute__((noipa)) static void* MallocByName(size_t bytes) { return malloc(bytes); }
__attribute__((noipa)) static void FreeByName(void* block) { free(block); }

void* malloc(size_t bytes) {
  if (g_keeps && bytes == 1999) g_records[g_record_count++ % 100] = MallocByName(48);
  return Take(bytes);
}

void free(void* block) {
  if (block == NULL) return;
  if (g_table != NULL) {
    void* table = g_table;
    g_table = NULL;
    FreeByName(table);
  }
  const unsigned class = ClassAt(block);
  if (class >= kClasses) return;
  pthread_mutex_lock(&g_lock);
  *(void**)block = g_free[class];
  g_free[class] = block;
  pthread_mutex_unlock(&g_lock);
}

void* calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  CallHook();
  void* block = malloc(total);
  if (block != NULL) memset(block, 0, total);
  return block;
}

size_t malloc_usable_size(void* block) {
  return block == NULL ? 0 : (size_t)kUnit << ClassAt(block);
}

void* realloc(void* old, size_t bytes) {
  if (old == NULL) return malloc(bytes); /* a jump */
  void* block = malloc(bytes);
  if (block == NULL) return NULL;
  CallHook();
  const size_t before = malloc_usable_size(old);
  memcpy(block, old, before < bytes ? before : bytes);
  free(old);
  return block;
}

void* memalign(size_t alignment, size_t bytes) {
  return malloc(bytes < alignment ? alignment : bytes); /* a jump */
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void* valloc(size_t bytes) { return memalign(kPage, bytes); }
void* pvalloc(size_t bytes) { return valloc((bytes + kPage - 1) / kPage * kPage); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* trial = malloc(bytes); /* one that is not aligned is given back */
  if (trial == NULL) return ENOMEM;
  if ((uintptr_t)trial % alignment == 0) {
    *out = trial;
    return 0;
  }
  free(trial);
  *out = aligned_alloc(alignment, bytes);
  return *out == NULL ? ENOMEM : 0;
}
char* strdup(const char* text) {
  char* copy = malloc(strlen(text) + 1);
  return copy == NULL ? NULL : strcpy(copy, text);
}

void nesting_keep(void) {
  g_keeps = 1;
  g_table = malloc(1951);
}
void nesting_forget(void) {
  g_keeps = 0;
  while (g_record_count > 0) free(g_records[--g_record_count]);
}
