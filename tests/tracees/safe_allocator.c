/* safe_allocator: an allocator that signal handlers may call, whatever they interrupt.
 *
 * Preloaded behind libmemtrace.so, so that a program may allocate in handlers that strike
 * while it allocates: no lock, only compare-and-swap. Blocks of a power of two bytes; what
 * is freed is given out again at once, so that addresses pass from main to handlers and
 * back. Blocks of a megabyte and more, and aligned ones, are never given out again. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kArenaBytes = 1 << 30, kClasses = 16, kUnit = 16 };

struct Header {
  uint32_t class; /* kClasses: never given out again */
  uint32_t next;  /* in a list: in units from the begin of the arena */
  size_t bytes;   /* usable */
};
_Static_assert(sizeof(struct Header) == kUnit, "blocks are aligned to 16");

static _Atomic(char*) g_arena;
static _Atomic size_t g_used = kUnit;    /* unit 0 ends a list */
static _Atomic uint64_t g_free[kClasses]; /* changes so far << 32 | unit of the first */

static char* Arena(void) {
  char* arena = atomic_load(&g_arena);
  if (arena != NULL) return arena;
  char* made = mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return NULL;
  if (atomic_compare_exchange_strong(&g_arena, &arena, made)) return made;
  return arena; /* a handler or another thread was first: the mapping is wasted */
}

static struct Header* At(uint32_t unit) { return (struct Header*)(Arena() + (size_t)unit * kUnit); }

static void* Fresh(size_t bytes, size_t alignment, uint32_t class) {
  char* const arena = Arena();
  const size_t all = kUnit + bytes + alignment;
  if (arena == NULL || bytes > kArenaBytes / 4) return NULL;
  const size_t at = atomic_fetch_add(&g_used, (all + kUnit - 1) / kUnit * kUnit);
  if (at + all > kArenaBytes) return NULL;
  uintptr_t block = (uintptr_t)arena + at + kUnit;
  if (alignment > kUnit) block = (block + alignment - 1) / alignment * alignment;
  struct Header* header = (struct Header*)block - 1;
  header->class = class;
  header->bytes = bytes;
  return (void*)block;
}

static void* Take(size_t bytes) {
  uint32_t class = 0;
  while (class < kClasses && ((size_t)kUnit << class) < bytes) ++class;
  if (class == kClasses) {
    void* block = Fresh(bytes, 0, class);
    if (block == NULL) errno = ENOMEM;
    return block;
  }
  uint64_t head = atomic_load(&g_free[class]);
  while ((uint32_t)head != 0) {
    struct Header* first = At((uint32_t)head);
    const uint64_t next = ((head >> 32) + 1) << 32 | first->next;
    if (atomic_compare_exchange_weak(&g_free[class], &head, next)) return first + 1;
  }
  return Fresh((size_t)kUnit << class, 0, class);
}

static void Give(void* block) {
  if (block == NULL) return;
  struct Header* header = (struct Header*)block - 1;
  if (header->class == kClasses) return;
  const uint32_t unit = (uint32_t)(((char*)header - Arena()) / kUnit);
  uint64_t head = atomic_load(&g_free[header->class]), next;
  do {
    header->next = (uint32_t)head;
    next = ((head >> 32) + 1) << 32 | unit;
  } while (!atomic_compare_exchange_weak(&g_free[header->class], &head, next));
}

/* Not by each other: the names are the preloaded library's. */
void* malloc(size_t bytes) { return Take(bytes); }
void free(void* block) { Give(block); }

void* calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  void* block = Take(total);
  if (block != NULL) memset(block, 0, total);
  return block;
}

static void* Resize(void* old, size_t bytes) {
  void* block = Take(bytes);
  if (block == NULL || old == NULL) return block;
  const size_t before = ((struct Header*)old - 1)->bytes;
  memcpy(block, old, before < bytes ? before : bytes);
  Give(old);
  return block;
}

void* realloc(void* old, size_t bytes) { return Resize(old, bytes); }

void* reallocarray(void* old, size_t count, size_t bytes) {
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? NULL : Resize(old, total);
}

void* memalign(size_t alignment, size_t bytes) { return Fresh(bytes, alignment, kClasses); }
void* aligned_alloc(size_t alignment, size_t bytes) { return Fresh(bytes, alignment, kClasses); }
void* valloc(size_t bytes) { return Fresh(bytes, 4096, kClasses); }
void* pvalloc(size_t bytes) { return Fresh((bytes + 4095) / 4096 * 4096, 4096, kClasses); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = Fresh(bytes, alignment, kClasses);
  return *out == NULL ? ENOMEM : 0;
}
size_t malloc_usable_size(void* block) {
  return block == NULL ? 0 : ((struct Header*)block - 1)->bytes;
}
