// RealAllocator: the next definition of each interposed function, found once.
//
// Before the search each pointer leads to a stub that starts it, so the event
// path tests nothing. dlsym may call back into us: what arrives meanwhile is
// served from the BootstrapArena. The stubs of mmap and its kin are plain system
// calls and start nothing; but recording the call does, and that may be inside
// another allocator's initialisation, under its lock. So the search asks only for
// names that exist: it must not make dlsym allocate.
//
// Threads: the search runs once, in whichever thread allocates first, which is
// before the program has a second one.

#ifndef MEMTRACE_PRELOAD_REAL_ALLOCATOR_H_
#define MEMTRACE_PRELOAD_REAL_ALLOCATOR_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memtrace {

struct RealAllocator {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  void (*free_sized)(void*, size_t);
  void (*free_aligned_sized)(void*, size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void*);
  void* (*mmap)(void*, size_t, int, int, int, off_t);
  int (*munmap)(void*, size_t);
  void* (*mremap)(void*, size_t, size_t, int, void*);
  // Declared variadic in libc, but the arguments are passed in the same way.
  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
  pid_t (*fork)();  // here, for a handler may fork, and dlsym() is not for handlers
  pid_t (*underscore_fork)();
  // Where these come before ours, they are the program's allocator, and what it leaves out of
  // the family has to meet it: its blocks are no business of the next one's. Else null.
  void* (*program_realloc)(void*, size_t) = nullptr;
  void (*program_free)(void*) = nullptr;
};

extern RealAllocator g_real;

// The program has called malloc_usable_size(): what lies behind the bytes it
// asked for may be in use.
extern std::atomic<bool> g_usable_sizes_asked;

// The next definition of syscall(), for the jump in preload/arch/.
extern "C" long (*memtrace_real_syscall)(long, long, long, long, long, long, long);

// Finds them all. True when they are found; false when called back from inside
// the search.
bool FindRealAllocator();

// Whether all of them are glibc's own, so that what is before a block is its chunk header.
bool RealAllocatorIsGlibc();

// Where the module of malloc lies; nothing where that is not known, or not yet. That of the real
// one, whatever stands before it in g_real (allocator_bracket.h).
void RealAllocatorModule(uintptr_t* begin, size_t* bytes);

// A definition of malloc, calloc, realloc or free that comes before ours: the program's
// calls go there. The program's own, or of a library that was preloaded before this one.
struct OtherDefinition {
  const char* function = nullptr;  // null: they come to us
  const char* module = "";         // its path; empty: the program itself
};
OtherDefinition FindOtherDefinition();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_REAL_ALLOCATOR_H_
