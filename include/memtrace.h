/* memtrace.h - what a program can tell memtrace, and ask of it.
 *
 * A program that includes this header links nothing and needs nothing at run time. Where
 * libmemtrace.so is not loaded every function here does nothing, for the price of one load
 * and two comparisons (and once, at the first call in each source file, a call into libc). With
 * MEMTRACE_DISABLE defined nothing is left of them.
 *
 * It is C89 and C++, for gcc and clang on Linux, in programs that are position-independent or not,
 * static, and in shared libraries. Other compilers and systems get what MEMTRACE_DISABLE gives.
 *
 * Every function may be called from any thread at any time: before main(), in destructors, and
 * in signal handlers, except memtrace_leak_check(), which must not be called in a signal handler.
 * errno stays as it was. Sizes are in bytes. Strings are copied during the call.
 *
 * An allocator of the program's own tells of its blocks, so that each has a call site of its own in
 * reports and is looked for as a leak:
 *
 *   void arena_init(struct arena *a) { memtrace_pool_create(a, "arena", 0); }
 *
 *   void *arena_take(struct arena *a, size_t n) {
 *     void *p = a->next;
 *     a->next += (n + 15) & ~(size_t)15;
 *     memtrace_pool_alloc(a, p, n);
 *     return p;
 *   }
 *
 *   void arena_reset(struct arena *a) {
 *     memtrace_pool_destroy(a);
 *     a->next = a->begin;
 *     memtrace_pool_create(a, "arena", 0);
 *   }
 *
 * There is no function that counts leaks: which blocks are lost is worked out from the
 * trace, by `memtrace leaks` and `memtrace report`, and not in the program.
 */
#ifndef MEMTRACE_H_
#define MEMTRACE_H_

#include <limits.h>
#include <stddef.h>

#define MEMTRACE_API_VERSION 1

/* Which call sites of lost blocks the report of a memtrace_leak_check() lists. Lost blocks
 * are compared with those of the check before it, which may be one that somebody asked for
 * from outside (`memtrace leaks`); the first check is compared with none. */
#define MEMTRACE_LEAKS_ANY 0u       /* all call sites with lost blocks */
#define MEMTRACE_LEAKS_NEW 1u       /* call sites with no lost block in the check before */
#define MEMTRACE_LEAKS_INCREASED 2u /* call sites with more lost blocks or bytes than then */
#define MEMTRACE_LEAKS_CHANGED 3u   /* call sites with more or fewer, and those that have none now */

/* Errors. Each function that returns one says when. */
#define MEMTRACE_NOT_ACTIVE (-1)    /* the library is not loaded, or it records nothing */
#define MEMTRACE_NOT_AVAILABLE (-2) /* it cannot be done in this process, or not at this time */
#define MEMTRACE_INVALID (-3)       /* an argument is wrong */
#define MEMTRACE_FULL (-4)          /* there are as many as there can be */

/* The table that the library answers with. Programs call the functions below instead. New
 * functions are added at its end. */
struct memtrace_functions {
  size_t size; /* of this struct, in bytes */
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

/* The empty asm behind the call keeps it from becoming a jump: so the caller is the innermost
 * frame of the stack that is recorded. */
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

#else /* not enabled: the functions do nothing */

#define MEMTRACE_CALL_(function, arguments) \
  do {                                      \
  } while (0)
#define MEMTRACE_ASK_(type, function, arguments, used, absent) \
  used;                                                        \
  return absent

#endif

/* Returns 1 if this process has a trace and what the calling thread allocates goes into it; 0 if
 * the library is not loaded, if it records nothing, or between memtrace_stop() and
 * memtrace_start(). */
MEMTRACE_INLINE_ int memtrace_is_active(void) {
  MEMTRACE_ASK_(int, is_active, (), (void)0, 0);
}

/* --- Leaks ---------------------------------------------------------------- */

/* Has the memory scanned now for what points to what: the threads of the program stand still for a
 * moment while a copy of it is made, and the copy scans. Which blocks are lost is then in the report
 * of the trace.
 *
 * `label` names the check in reports and may be null. `show` is one of MEMTRACE_LEAKS_*. With
 * `wait` not 0 the call returns when the scan is done, and if another scan is under way it makes its
 * own after that one; with 0 it returns as soon as the copy is made.
 *
 * Returns the number of the scan in the trace, from 1, or an error:
 *   MEMTRACE_NOT_ACTIVE     the library is not loaded, or it records nothing in this process
 *   MEMTRACE_INVALID        `show` is none of MEMTRACE_LEAKS_*
 *   MEMTRACE_NOT_AVAILABLE  another scan is under way and `wait` is 0; or no scan could be made, or
 *                           it was cut short: the report says why (sampling, a flight recorder,
 *                           a seccomp filter, no memory, no process to be had, a minute gone by)
 *
 * It must not be called in a signal handler. */
MEMTRACE_INLINE_ long memtrace_leak_check(const char *label, unsigned show, int wait) {
  MEMTRACE_ASK_(long, leak_check, (label, show, wait), ((void)label, (void)show, (void)wait),
                MEMTRACE_NOT_ACTIVE);
}

/* The block that `object` points to, or into, is not reported as a leak until it is freed, nor are
 * the blocks that it leads to. Null is ignored. */
MEMTRACE_INLINE_ void memtrace_ignore_object(const void *object) {
  (void)object;
  MEMTRACE_CALL_(ignore_object, (object));
}

/* The same for all blocks that the calling thread allocates between memtrace_disable() and
 * memtrace_enable(). The pairs may be nested. */
MEMTRACE_INLINE_ void memtrace_disable(void) { MEMTRACE_CALL_(disable, ()); }
MEMTRACE_INLINE_ void memtrace_enable(void) { MEMTRACE_CALL_(enable, ()); }

/* Makes the memory [begin, begin + size) a root: a block that an aligned word in it points to is not
 * lost. It may lie anywhere, in memory that no scan looks through or inside a block.
 *
 * Returns 0, or an error:
 *   MEMTRACE_NOT_ACTIVE  the library is not loaded
 *   MEMTRACE_INVALID     `begin` is null, `size` is 0, or the region wraps around the address space
 *   MEMTRACE_FULL        there are 1024 regions already */
MEMTRACE_INLINE_ int memtrace_root_region(const void *begin, size_t size) {
  MEMTRACE_ASK_(int, root_region, (begin, size), ((void)begin, (void)size), MEMTRACE_NOT_ACTIVE);
}
/* Takes back one call of memtrace_root_region() with the same arguments.
 *
 * Returns 0, or an error:
 *   MEMTRACE_NOT_ACTIVE  the library is not loaded
 *   MEMTRACE_INVALID     there is no such region */
MEMTRACE_INLINE_ int memtrace_unroot_region(const void *begin, size_t size) {
  MEMTRACE_ASK_(int, unroot_region, (begin, size), ((void)begin, (void)size), MEMTRACE_NOT_ACTIVE);
}

/* --- Allocators of the program's own -------------------------------------- */

/* Tells of a pool. `pool` is an address by which it is known: that of its header, or of anything
 * else that no other pool has; null is ignored. `name` may be null and is cut at 120 bytes. `flags`
 * must be 0. The blocks of a pool are blocks like those of malloc, with a stack each, and are
 * looked for as leaks. With MEMTRACE_SAMPLE_BYTES neither pools nor their blocks are recorded.
 *
 * Where blocks lie in a block of malloc, or in another such block, a byte belongs to the innermost:
 * the outer block counts only the bytes that it has not given out. In the search for leaks the
 * blocks inside take the place of the outer one, as with Valgrind's MEMPOOL and MALLOCLIKE requests.
 * A block ends when it is freed, when its pool is destroyed, and with the block that it lies in. */
MEMTRACE_INLINE_ void memtrace_pool_create(const void *pool, const char *name, unsigned flags) {
  (void)pool, (void)name, (void)flags;
  MEMTRACE_CALL_(pool_create, (pool, name, flags));
}
/* Ends all blocks of the pool. Call it before the memory goes back to where it came from. */
MEMTRACE_INLINE_ void memtrace_pool_destroy(const void *pool) {
  (void)pool;
  MEMTRACE_CALL_(pool_destroy, (pool));
}
/* Tell of a block of the pool. Call memtrace_pool_alloc() after the block was given out, and
 * memtrace_pool_free() before it is taken back. `size` is in bytes. A null `block` is ignored. */
MEMTRACE_INLINE_ void memtrace_pool_alloc(const void *pool, const void *block, size_t size) {
  (void)pool, (void)block, (void)size;
  MEMTRACE_CALL_(pool_alloc, (pool, block, size));
}
MEMTRACE_INLINE_ void memtrace_pool_free(const void *pool, const void *block) {
  (void)pool, (void)block;
  MEMTRACE_CALL_(pool_free, (pool, block));
}

/* Tell of a block of an allocator that has no pools, at the same moments. */
MEMTRACE_INLINE_ void memtrace_block_alloc(const void *block, size_t size) {
  (void)block, (void)size;
  MEMTRACE_CALL_(block_alloc, (block, size));
}
MEMTRACE_INLINE_ void memtrace_block_free(const void *block) {
  (void)block;
  MEMTRACE_CALL_(block_free, (block));
}

/* --- Where the program is ------------------------------------------------- */

/* Begin and end a phase of the whole process. Phases may nest and overlap, the same name may begin
 * again, and a phase may end on another thread than it began on. `name` is cut at 120 bytes;
 * null is allowed, and reports say "(no name)". */
MEMTRACE_INLINE_ void memtrace_phase_begin(const char *name) {
  (void)name;
  MEMTRACE_CALL_(phase_begin, (name));
}
MEMTRACE_INLINE_ void memtrace_phase_end(const char *name) {
  (void)name;
  MEMTRACE_CALL_(phase_end, (name));
}
/* Gives the present instant a name. `name` is as above. */
MEMTRACE_INLINE_ void memtrace_mark(const char *name) {
  (void)name;
  MEMTRACE_CALL_(mark, (name));
}

/* From memtrace_stop() to memtrace_start(), what any thread allocates is recorded without a stack
 * and is in no figure of allocations, and is not reported as a leak. That the block is there is
 * recorded even so, and so is every free: so what is known of all other blocks stays true. The
 * calls do not nest: one memtrace_start() ends any number of memtrace_stop(). */
MEMTRACE_INLINE_ void memtrace_start(void) { MEMTRACE_CALL_(start, ()); }
MEMTRACE_INLINE_ void memtrace_stop(void) { MEMTRACE_CALL_(stop, ()); }

#undef MEMTRACE_CALL_
#undef MEMTRACE_ASK_
#undef MEMTRACE_NOT_ASKED_
#undef MEMTRACE_ENABLED_
#undef MEMTRACE_INLINE_

#endif /* MEMTRACE_H_ */
