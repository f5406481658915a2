/* memtrace.h - what a program can tell memtrace, and ask of it.
 *
 * A program that includes this header links nothing and needs nothing at run time. Where
 * libmemtrace.so is not loaded every function here does nothing, for the price of one load
 * and two comparisons (and once, at the first call in each source file, a call into libc). With
 * MEMTRACE_DISABLE defined nothing is left of them.
 *
 * C89 and C++, gcc and clang; position-independent or not, static, in shared libraries, in
 * signal handlers, before main() and in destructors. errno stays as it was. In other compilers and off
 * Linux it is as with MEMTRACE_DISABLE.
 *
 * There is no function that counts leaks: which blocks are lost is worked out from the
 * trace, by `memtrace leaks` and `memtrace report`, and not in the program.
 */
#ifndef MEMTRACE_H_
#define MEMTRACE_H_

#include <limits.h>
#include <stddef.h>

#define MEMTRACE_API_VERSION 1

/* memtrace_leak_check(): of which loss records, against the check before, the report of this
 * check shall be. */
#define MEMTRACE_LEAKS_ANY 0u       /* all there are */
#define MEMTRACE_LEAKS_NEW 1u       /* that had no blocks */
#define MEMTRACE_LEAKS_INCREASED 2u /* that have more blocks or bytes */
#define MEMTRACE_LEAKS_CHANGED 3u   /* that have more or fewer */

/* Results below 0. */
#define MEMTRACE_NOT_ACTIVE (-1)    /* there is no library, or it records nothing */
#define MEMTRACE_NOT_AVAILABLE (-2) /* not in this process, or not at this time */
#define MEMTRACE_INVALID (-3)       /* an argument makes no sense */
#define MEMTRACE_FULL (-4)          /* no room for one more */

/* What the library gives; use the functions below. Grows at its end. */
struct memtrace_functions {
  size_t size; /* of this struct */
  int (*is_active)(void);
  long (*leak_check)(const char *label, unsigned show, int wait);
  void (*ignore_object)(const void *object);
  void (*disable)(void);
  void (*enable)(void);
  int (*root_region)(const void *begin, size_t size);
  int (*unroot_region)(const void *begin, size_t size);
  void (*pool_create)(const void *pool, const char *name, unsigned flags);
  void (*pool_destroy)(const void *pool);
  void (*pool_alloc)(const void *pool, const void *block, size_t size);
  void (*pool_free)(const void *pool, const void *block);
  void (*block_alloc)(const void *block, size_t size);
  void (*block_free)(const void *block);
  void (*phase_begin)(const char *name);
  void (*phase_end)(const char *name);
  void (*mark)(const char *name);
  void (*start)(void);
  void (*stop)(void);
};

#if defined(__linux__) && defined(__GNUC__) && !defined(MEMTRACE_DISABLE)
#define MEMTRACE_ENABLED_ 1
#else
#define MEMTRACE_ENABLED_ 0
#endif

#if defined(__GNUC__)
#define MEMTRACE_INLINE_ static __inline__ __attribute__((__always_inline__, __unused__))
#elif defined(__cplusplus)
#define MEMTRACE_INLINE_ static inline
#else
#define MEMTRACE_INLINE_ static
#endif

/* How the library is found. A weak symbol is null in a static or non-PIE program with some
 * linkers, and dlsym() takes a lock, allocates, and is not in every static libc. The library
 * wraps pthread_setname_np() anyway. So that is called for no thread, with a name of which it knows
 * what is meant; libc's own sees a name that is too long, and returns an error before it does
 * anything: no lock, no system call. */
struct memtrace_request_ {
  char text[40];
  const struct memtrace_functions *functions;
};
#define MEMTRACE_REQUEST_ "\001memtrace: which functions are there?"

#if MEMTRACE_ENABLED_

#ifdef __cplusplus
extern "C" {
#endif
/* Another name for it, so that its declaration may or may not be seen as well. Before glibc
 * 2.34 it was in libpthread, which the program may not be linked with. */
extern int memtrace_ask_(unsigned long no_thread, const char *text) __asm__("pthread_setname_np")
#if !defined(__GLIBC__) || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 34)
    __attribute__((__weak__))
#endif
    ;
#ifdef __cplusplus
}
#endif

/* 1: nobody has asked yet; null: there is no library. */
#ifdef __cplusplus
#define MEMTRACE_NOT_ASKED_ (reinterpret_cast<const struct memtrace_functions *>(1))
#else
#define MEMTRACE_NOT_ASKED_ ((const struct memtrace_functions *)1)
#endif
static const struct memtrace_functions *memtrace_known_ __attribute__((__unused__)) =
    MEMTRACE_NOT_ASKED_;

__attribute__((__cold__, __noinline__, __unused__)) static const struct memtrace_functions *
memtrace_find_(void) {
  struct memtrace_request_ request = {MEMTRACE_REQUEST_, NULL};
#if !defined(__GLIBC__) || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 34)
  if (&memtrace_ask_)
#endif
  {
    memtrace_ask_(0, request.text);
    /* The call changes it through the address of another member. */
    __asm__ __volatile__("" : "+m"(request) : : "memory");
  }
  __atomic_store_n(&memtrace_known_, request.functions, __ATOMIC_RELAXED);
  return request.functions;
}

MEMTRACE_INLINE_ const struct memtrace_functions *memtrace_functions_(void) {
  const struct memtrace_functions *known = __atomic_load_n(&memtrace_known_, __ATOMIC_RELAXED);
  if (__builtin_expect(known == MEMTRACE_NOT_ASKED_, 0)) return memtrace_find_();
  return known;
}

/* Behind the call, so that it is no jump: the caller is the innermost frame of the stack that
 * is recorded. */
#define MEMTRACE_CALL_(function, arguments)                                     \
  do {                                                                          \
    const struct memtrace_functions *memtrace_f_ = memtrace_functions_();       \
    if (memtrace_f_) {                                                         \
      memtrace_f_->function arguments;                                          \
      __asm__ __volatile__("");                                                 \
    }                                                                           \
  } while (0)
#define MEMTRACE_ASK_(type, function, arguments, used, absent)                  \
  const struct memtrace_functions *memtrace_f_ = memtrace_functions_();         \
  type memtrace_result_ = (absent);                                             \
  used;                                                                         \
  if (memtrace_f_) {                                                           \
    memtrace_result_ = memtrace_f_->function arguments;                         \
    __asm__ __volatile__("" : "+r"(memtrace_result_));                          \
  }                                                                             \
  return memtrace_result_

#else /* nothing of it */

#define MEMTRACE_CALL_(function, arguments) \
  do {                                      \
  } while (0)
#define MEMTRACE_ASK_(type, function, arguments, used, absent) \
  used;                                                        \
  return absent

#endif

/* 1: this process has a trace, and what the calling thread allocates goes into it. 0: no
 * library, nothing recorded, or stopped by memtrace_stop(). */
MEMTRACE_INLINE_ int memtrace_is_active(void) {
  MEMTRACE_ASK_(int, is_active, (), (void)0, 0);
}

/* --- Leaks ---------------------------------------------------------------- */

/* Looks, now, for what points to what: the program stands still for a moment, and a copy of it
 * scans. `label` names the check in reports and may be null; `show` is one of MEMTRACE_LEAKS_*;
 * `wait`: return only when the scan is done. Returns the number of the scan in the
 * trace, from 1, or one of the results below 0. What is lost is in the report of the trace.
 * Not in signal handlers. */
MEMTRACE_INLINE_ long memtrace_leak_check(const char *label, unsigned show, int wait) {
  MEMTRACE_ASK_(long, leak_check, (label, show, wait), ((void)label, (void)show, (void)wait),
                MEMTRACE_NOT_ACTIVE);
}

/* The block that `object` points to, or into, is never reported as a leak, nor is what it leads to.
 * Until it is freed. */
MEMTRACE_INLINE_ void memtrace_ignore_object(const void *object) {
  (void)object;
  MEMTRACE_CALL_(ignore_object, (object));
}

/* The same for all blocks that this thread allocates between the two. They may be nested. */
MEMTRACE_INLINE_ void memtrace_disable(void) { MEMTRACE_CALL_(disable, ()); }
MEMTRACE_INLINE_ void memtrace_enable(void) { MEMTRACE_CALL_(enable, ()); }

/* Aligned words in [begin, begin + size) are roots, wherever that lies: in memory that is not looked
 * through, or inside a block. At most 1024 regions at a time. Returns 0, or below 0. */
MEMTRACE_INLINE_ int memtrace_root_region(const void *begin, size_t size) {
  MEMTRACE_ASK_(int, root_region, (begin, size), ((void)begin, (void)size), MEMTRACE_NOT_ACTIVE);
}
/* Takes back one call with the same arguments. */
MEMTRACE_INLINE_ int memtrace_unroot_region(const void *begin, size_t size) {
  MEMTRACE_ASK_(int, unroot_region, (begin, size), ((void)begin, (void)size), MEMTRACE_NOT_ACTIVE);
}

/* --- Allocators of the program's own -------------------------------------- */

/* A pool is known by an address: of its header, of whatever is its alone. Its blocks are
 * blocks like those of malloc, with a stack each, and are looked for as leaks. `name` may be null, and is
 * cut at 120 bytes; `flags` is 0.
 *
 * Where blocks lie in a block of malloc, or in another such block, a byte belongs to the innermost;
 * a holder's own bytes are those that it has not given out. In the search for leaks the blocks
 * inside take the place of the holder, as Valgrind has it for its MEMPOOL and MALLOCLIKE requests.
 * A block ends with its free, with its pool, and with the block that it lies in. */
MEMTRACE_INLINE_ void memtrace_pool_create(const void *pool, const char *name, unsigned flags) {
  (void)pool, (void)name, (void)flags;
  MEMTRACE_CALL_(pool_create, (pool, name, flags));
}
/* Ends all blocks of the pool. Before the memory goes back to where it came from. */
MEMTRACE_INLINE_ void memtrace_pool_destroy(const void *pool) {
  (void)pool;
  MEMTRACE_CALL_(pool_destroy, (pool));
}
/* After the block was given out, and before it is taken back. */
MEMTRACE_INLINE_ void memtrace_pool_alloc(const void *pool, const void *block, size_t size) {
  (void)pool, (void)block, (void)size;
  MEMTRACE_CALL_(pool_alloc, (pool, block, size));
}
MEMTRACE_INLINE_ void memtrace_pool_free(const void *pool, const void *block) {
  (void)pool, (void)block;
  MEMTRACE_CALL_(pool_free, (pool, block));
}

/* The same for an allocator without pools. */
MEMTRACE_INLINE_ void memtrace_block_alloc(const void *block, size_t size) {
  (void)block, (void)size;
  MEMTRACE_CALL_(block_alloc, (block, size));
}
MEMTRACE_INLINE_ void memtrace_block_free(const void *block) {
  (void)block;
  MEMTRACE_CALL_(block_free, (block));
}

/* --- Where the program is ------------------------------------------------- */

/* A phase is of the whole process; phases may nest and overlap, and one may come again under its
 * name. It may end on another thread. Names are cut at 120 bytes. */
MEMTRACE_INLINE_ void memtrace_phase_begin(const char *name) {
  (void)name;
  MEMTRACE_CALL_(phase_begin, (name));
}
MEMTRACE_INLINE_ void memtrace_phase_end(const char *name) {
  (void)name;
  MEMTRACE_CALL_(phase_end, (name));
}
/* An instant with a name. */
MEMTRACE_INLINE_ void memtrace_mark(const char *name) {
  (void)name;
  MEMTRACE_CALL_(mark, (name));
}

/* memtrace_stop() takes the stacks and the figures away from what all threads allocate until
 * memtrace_start(). That a block is there is recorded even so, and so is every free: what was
 * known stays true, and no leak is made up. Blocks of that time are in no figure and are never
 * reported as leaks. They do not nest. */
MEMTRACE_INLINE_ void memtrace_start(void) { MEMTRACE_CALL_(start, ()); }
MEMTRACE_INLINE_ void memtrace_stop(void) { MEMTRACE_CALL_(stop, ()); }

#undef MEMTRACE_CALL_
#undef MEMTRACE_ASK_
#undef MEMTRACE_NOT_ASKED_
#undef MEMTRACE_ENABLED_
#undef MEMTRACE_INLINE_

#endif /* MEMTRACE_H_ */
