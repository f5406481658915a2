#include "preload/real_allocator.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/arch/arch.h"
#include "preload/bootstrap_arena.h"
#include "preload/next_functions.h"
#include "preload/sys.h"

namespace memtrace {

constinit BootstrapArena g_bootstrap_arena;

namespace {

enum class Search { kNotBegun, kRunning, kDone };
constinit std::atomic<Search> g_search{Search::kNotBegun};
constinit void* g_malloc_found = nullptr;

// The stubs. Each asks for the search; inside of it they serve from the arena.

void* EarlyMalloc(size_t bytes) {
  return FindRealAllocator() ? g_real.malloc(bytes) : g_bootstrap_arena.Allocate(bytes);
}
void* EarlyCalloc(size_t count, size_t bytes) {
  if (FindRealAllocator()) return g_real.calloc(count, bytes);
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? nullptr : g_bootstrap_arena.Allocate(total);
}
void* EarlyRealloc(void* block, size_t bytes) {
  if (FindRealAllocator()) return g_real.realloc(block, bytes);
  void* moved = g_bootstrap_arena.Allocate(bytes);
  if (moved != nullptr && block != nullptr && g_bootstrap_arena.Owns(block)) {
    const size_t old = BootstrapArena::Size(block);
    memcpy(moved, block, old < bytes ? old : bytes);
  }
  return moved;
}
void EarlyFree(void* block) {
  if (FindRealAllocator()) g_real.free(block);
}
void EarlyFreeSized(void* block, size_t) { EarlyFree(block); }
void EarlyFreeAlignedSized(void* block, size_t, size_t) { EarlyFree(block); }
int EarlyPosixMemalign(void** out, size_t alignment, size_t bytes) {
  if (FindRealAllocator()) return g_real.posix_memalign(out, alignment, bytes);
  void* block = g_bootstrap_arena.Allocate(bytes, alignment);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
void* EarlyAlignedAlloc(size_t alignment, size_t bytes) {
  return FindRealAllocator() ? g_real.aligned_alloc(alignment, bytes)
                             : g_bootstrap_arena.Allocate(bytes, alignment);
}
void* EarlyMemalign(size_t alignment, size_t bytes) {
  return FindRealAllocator() ? g_real.memalign(alignment, bytes)
                             : g_bootstrap_arena.Allocate(bytes, alignment);
}
void* EarlyValloc(size_t bytes) {
  return FindRealAllocator() ? g_real.valloc(bytes)
                             : g_bootstrap_arena.Allocate(bytes, arch::kPageBytes);
}
void* EarlyPvalloc(size_t bytes) {
  return FindRealAllocator() ? g_real.pvalloc(bytes)
                             : g_bootstrap_arena.Allocate(bytes, arch::kPageBytes);
}
size_t EarlyUsableSize(void* block) {
  if (FindRealAllocator()) return g_real.malloc_usable_size(block);
  return g_bootstrap_arena.Owns(block) ? BootstrapArena::Size(block) : 0;
}
// UsableSizeOfAny() takes the place of malloc_usable_size() after a search in which the arena gave
// out blocks. In most processes there are no such blocks, and nobody need ask whose a block is.
constinit decltype(RealAllocator::malloc_usable_size) g_next_usable_size = nullptr;
size_t UsableSizeOfAny(void* block) {
  return g_bootstrap_arena.Owns(block) ? BootstrapArena::Size(block) : g_next_usable_size(block);
}

template <typename T>
T SetErrno(long result, T failed) {
  if (sys::Failed(result)) {
    errno = static_cast<int>(-result);
    return failed;
  }
  return (T)result;
}
void* SyscallMmap(void* hint, size_t bytes, int prot, int flags, int fd, off_t offset) {
  return SetErrno(reinterpret_cast<long>(
                      sys::Mmap(hint, bytes, prot, flags, fd, static_cast<uint64_t>(offset))),
                  reinterpret_cast<void*>(-1));
}
int SyscallMunmap(void* address, size_t bytes) { return SetErrno(sys::Munmap(address, bytes), -1); }
void* SyscallMremap(void* old, size_t old_bytes, size_t bytes, int flags, void* wanted) {
  return SetErrno(sys::Call(SYS_mremap, reinterpret_cast<long>(old), static_cast<long>(old_bytes),
                            static_cast<long>(bytes), flags, reinterpret_cast<long>(wanted)),
                  reinterpret_cast<void*>(-1));
}

// The first call of a process that never allocated. Inside the search, or when it found
// nothing, it is a system call; none that returns twice comes from there.
int EarlyPrctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
pid_t EarlyFork() {
  if (FindRealAllocator()) return g_real.fork();
  errno = EAGAIN;
  return -1;
}
pid_t EarlyUnderscoreFork() {
  if (FindRealAllocator()) return g_real.underscore_fork();
  errno = EAGAIN;
  return -1;
}

// C23's sized functions are not looked for: this libc lacks them, and a dlsym that
// finds nothing calls malloc for its error. When that is the program's own malloc,
// whose initialisation we may be called from, it waits for its own lock for ever.
// The sizes are hints; a free is a free.
void PlainFreeSized(void* block, size_t) { g_real.free(block); }
void PlainFreeAlignedSized(void* block, size_t, size_t) { g_real.free(block); }

const link_map* ModuleOf(const void* address) {
  dl_find_object object;
  return address != nullptr && _dl_find_object(const_cast<void*>(address), &object) == 0
             ? object.dlfo_link_map
             : nullptr;
}

// The definition that the program's calls of `name` reach, if that is not ours.
void* DefinedBeforeOurs(const char* name) {
  if (_dl_find_object == nullptr) return nullptr;  // not glibc
  void* const used = dlsym(RTLD_DEFAULT, name);
  const link_map* const module = ModuleOf(used);
  if (module == nullptr || module == ModuleOf(reinterpret_cast<void*>(&FindRealAllocator))) {
    return nullptr;
  }
  // In an executable without PIE that takes the address of malloc, that is a PLT entry of
  // its own, which calls ours. A definition has a symbol there.
  Dl_info info;
  ElfW(Sym)* symbol = nullptr;
  const bool defined =
      dladdr1(used, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 &&
      symbol != nullptr && info.dli_saddr == used && symbol->st_shndx != SHN_UNDEF;
  return defined ? used : nullptr;
}

template <typename F>
void Find(F*& pointer, const char* name, F* otherwise) {
  void* found = dlsym(RTLD_NEXT, name);
  pointer = found != nullptr ? reinterpret_cast<F*>(found) : otherwise;
}

}  // namespace

constinit std::atomic<bool> g_usable_sizes_asked{false};

constinit RealAllocator g_real = {
    EarlyMalloc,       EarlyCalloc,   EarlyRealloc,  EarlyFree,
    EarlyFreeSized,    EarlyFreeAlignedSized,
    EarlyPosixMemalign, EarlyAlignedAlloc, EarlyMemalign, EarlyValloc, EarlyPvalloc,
    EarlyUsableSize,   SyscallMmap,   SyscallMunmap, SyscallMremap,
    EarlyPrctl,        EarlyFork,     EarlyUnderscoreFork,
};

namespace {

long EarlySyscall(long number, long a, long b, long c, long d, long e, long f) {
  FindRealAllocator();
  if (memtrace_real_syscall != EarlySyscall) {
    return memtrace_real_syscall(number, a, b, c, d, e, f);
  }
  return SetErrno(sys::Call(number, a, b, c, d, e, f), -1L);
}
int EarlyPrctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  FindRealAllocator();
  if (g_real.prctl != EarlyPrctl) return g_real.prctl(option, a, b, c, d);
  return SetErrno(sys::Call(SYS_prctl, option, static_cast<long>(a), static_cast<long>(b),
                            static_cast<long>(c), static_cast<long>(d)),
                  -1);
}

}  // namespace

constinit decltype(memtrace_real_syscall) memtrace_real_syscall = EarlySyscall;

bool FindRealAllocator() {
  Search expected = Search::kNotBegun;
  if (!g_search.compare_exchange_strong(expected, Search::kRunning, std::memory_order_acquire)) {
    return expected == Search::kDone;
  }
  // Only names that every glibc has: see PlainFreeSized.
  const int saved_errno = errno;
  RealAllocator found = g_real;
  Find(found.malloc, "malloc", g_real.malloc);
  Find(found.calloc, "calloc", g_real.calloc);
  Find(found.realloc, "realloc", g_real.realloc);
  Find(found.free, "free", g_real.free);
  found.free_sized = PlainFreeSized;
  found.free_aligned_sized = PlainFreeAlignedSized;
  Find(found.posix_memalign, "posix_memalign", g_real.posix_memalign);
  Find(found.aligned_alloc, "aligned_alloc", g_real.aligned_alloc);
  Find(found.memalign, "memalign", g_real.memalign);
  Find(found.valloc, "valloc", g_real.valloc);
  Find(found.pvalloc, "pvalloc", g_real.pvalloc);
  Find(found.malloc_usable_size, "malloc_usable_size", g_real.malloc_usable_size);
  found.program_realloc = reinterpret_cast<void* (*)(void*, size_t)>(DefinedBeforeOurs("realloc"));
  found.program_free = reinterpret_cast<void (*)(void*)>(DefinedBeforeOurs("free"));
  Find(found.mmap, "mmap", g_real.mmap);
  Find(found.munmap, "munmap", g_real.munmap);
  Find(found.mremap, "mremap", g_real.mremap);
  Find(memtrace_real_syscall, "syscall", memtrace_real_syscall);
  Find(found.prctl, "prctl", g_real.prctl);
  Find(found.fork, "fork", g_real.fork);
  Find(found.underscore_fork, "_Fork", g_real.underscore_fork);
  Next();
  if (g_bootstrap_arena.used_end() != g_bootstrap_arena.begin()) {
    g_next_usable_size = found.malloc_usable_size;
    found.malloc_usable_size = UsableSizeOfAny;
  }
  g_malloc_found = reinterpret_cast<void*>(found.malloc);
  g_real = found;
  errno = saved_errno;
  g_search.store(Search::kDone, std::memory_order_release);
  return true;
}

bool RealAllocatorIsGlibc() {
  if (!FindRealAllocator()) return false;
  // Not by a name of the allocator's: tcmalloc and mimalloc define __libc_malloc too.
  const link_map* const libc = ModuleOf(dlsym(RTLD_NEXT, "gnu_get_libc_version"));
  if (libc == nullptr) return false;
  const void* const family[] = {
      reinterpret_cast<void*>(g_real.malloc),         reinterpret_cast<void*>(g_real.calloc),
      reinterpret_cast<void*>(g_real.realloc),        reinterpret_cast<void*>(g_real.free),
      reinterpret_cast<void*>(g_real.posix_memalign), reinterpret_cast<void*>(g_real.aligned_alloc),
      reinterpret_cast<void*>(g_real.memalign),       reinterpret_cast<void*>(g_real.valloc),
      reinterpret_cast<void*>(g_real.pvalloc)};
  for (const void* function : family) {
    if (ModuleOf(function) != libc) return false;
  }
  return true;
}

void RealAllocatorModule(uintptr_t* begin, size_t* bytes) {
  dl_find_object module;
  if (g_malloc_found == nullptr || _dl_find_object(g_malloc_found, &module) != 0) return;
  *begin = reinterpret_cast<uintptr_t>(module.dlfo_map_start);
  *bytes = reinterpret_cast<uintptr_t>(module.dlfo_map_end) - *begin;
}

OtherDefinition FindOtherDefinition() {
  for (const char* name : {"malloc", "calloc", "realloc", "free"}) {
    if (void* const used = DefinedBeforeOurs(name)) return {name, ModuleOf(used)->l_name};
  }
  return {};
}

}  // namespace memtrace
