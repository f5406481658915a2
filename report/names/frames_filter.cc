#include "report/names/frames_filter.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "format/records.h"
#include "report/base/path.h"
#include "report/names/function_name.h"
#include "report/names/rust_names.h"

namespace memtrace::report::names {
namespace {

using Names = absl::flat_hash_set<absl::string_view>;

// Wrappers of the allocator in libraries and programs that one meets often. A
// list and not a pattern: a pattern would also hide somebody's leaky_malloc().
const Names& AllocatorNames() {
  static const Names& names = *new Names{
      // libc
      "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
      "memalign", "valloc", "pvalloc", "free", "cfree", "free_sized", "free_aligned_sized",
      "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign", "__libc_valloc",
      "__libc_pvalloc", "__libc_free", "__libc_reallocarray", "__GI___libc_malloc",
      "__GI___libc_realloc", "strdup", "strndup", "__strdup", "__strndup", "__GI___strdup",
      "__GI___strndup", "wcsdup", "asprintf", "vasprintf", "__asprintf", "__vasprintf",
      "___asprintf", "__asprintf_chk", "__vasprintf_chk", "__vasprintf_internal",
      "__GI___asprintf", "mmap", "mmap64", "__mmap", "__mmap64", "mremap", "brk", "sbrk", "shmat",
      // The usual wrappers: libiberty, gnulib, git, BSD
      "xmalloc", "xcalloc", "xrealloc", "xstrdup", "xstrndup", "xmemdup", "xmemdup0", "xzalloc",
      "xnmalloc", "xnrealloc", "x2realloc", "x2nrealloc", "xpalloc", "ximalloc", "xizalloc",
      "xirealloc", "xicalloc", "xinmalloc", "xireallocarray", "xreallocarray", "xcharalloc",
      "xmallocz", "xmallocarray", "xasprintf", "xvasprintf", "do_xmalloc", "do_xmallocz",
      "memory_limit_check", "sh_xmalloc", "sh_xrealloc", "imalloc", "irealloc", "icalloc",
      "emalloc", "ecalloc", "erealloc", "estrdup", "safe_malloc", "safe_calloc", "safe_realloc",
      "checked_malloc", "malloc_or_die", "xmalloc_flags", "xmalloc_failed",
      // GLib
      "g_malloc", "g_malloc0", "g_malloc_n", "g_malloc0_n", "g_realloc", "g_realloc_n",
      "g_try_malloc", "g_try_malloc0", "g_try_malloc_n", "g_try_malloc0_n", "g_try_realloc",
      "g_try_realloc_n", "g_slice_alloc", "g_slice_alloc0", "g_slice_copy", "g_strdup",
      "g_strndup", "g_memdup", "g_memdup2", "g_aligned_alloc", "g_aligned_alloc0",
      "standard_malloc", "standard_calloc", "standard_realloc", "g_strdup_printf",
      "g_strdup_vprintf", "g_vasprintf",
      // GCC's collector
      "ggc_internal_alloc", "ggc_internal_cleared_alloc", "ggc_realloc",
      // CPython
      "_PyMem_RawMalloc", "_PyMem_RawCalloc", "_PyMem_RawRealloc", "_PyObject_Malloc",
      "_PyObject_Calloc", "_PyObject_Realloc", "PyMem_RawMalloc", "PyMem_RawCalloc",
      "PyMem_RawRealloc", "PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc", "PyObject_Malloc",
      "PyObject_Calloc", "PyObject_Realloc", "pymalloc_alloc", "_PyMem_DebugRawAlloc",
      "_PyMem_DebugRawMalloc", "_PyMem_DebugMalloc",
      // SQLite
      "sqlite3MemMalloc", "sqlite3MemRealloc", "sqlite3Malloc", "sqlite3MallocZero",
      "sqlite3_malloc", "sqlite3_malloc64", "sqlite3Realloc", "sqlite3_realloc",
      "sqlite3_realloc64", "mallocWithAlarm", "sqlite3DbMallocRaw", "sqlite3DbMallocRawNN",
      "sqlite3DbMallocZero", "sqlite3DbRealloc", "sqlite3DbReallocOrFree", "dbMallocRawFinish",
      "dbReallocFinish", "sqlite3DbStrDup", "sqlite3DbStrNDup",
      // Perl, Redis, OpenSSL, APR, Lua, zlib, xz, git2, curl
      "Perl_safesysmalloc", "Perl_safesyscalloc", "Perl_safesysrealloc", "Perl_savepv",
      "Perl_savepvn", "zmalloc", "zcalloc", "zrealloc", "ztrymalloc", "ztrycalloc", "ztryrealloc",
      "ztrymalloc_usable", "ztrycalloc_usable", "ztryrealloc_usable", "zmalloc_usable",
      "zcalloc_usable", "zrealloc_usable", "zcalloc_num", "zstrdup", "zmalloc_usable_internal",
      "ztrymalloc_usable_internal", "zrealloc_usable_internal", "ztryrealloc_usable_internal",
      "ztrycalloc_usable_internal", "CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc",
      "CRYPTO_clear_realloc", "CRYPTO_strdup", "CRYPTO_strndup", "CRYPTO_memdup",
      "CRYPTO_secure_malloc", "CRYPTO_secure_zalloc", "apr_palloc", "apr_pcalloc", "l_alloc",
      "luaM_realloc_", "luaM_malloc_", "zcalloc", "lzma_alloc", "lzma_alloc_zero", "git__malloc",
      "git__calloc", "git__realloc", "git__strdup", "Curl_memdup", "stdalloc__malloc",
      // nginx, HotSpot, Ruby
      "ngx_alloc", "ngx_calloc", "ngx_memalign", "os::malloc", "os::realloc", "os::strdup",
      "AllocateHeap", "ReallocateHeap", "ruby_xmalloc", "ruby_xmalloc2", "ruby_xcalloc",
      "ruby_xrealloc", "ruby_xrealloc2",
      // Rust's allocator
      "__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rdl_alloc", "__rdl_alloc_zeroed",
      "__rdl_realloc", "__rg_alloc", "__rg_alloc_zeroed", "__rg_realloc",
      // Objective-C and GNUstep, SWI-Prolog
      "objc_malloc", "objc_atomic_malloc", "objc_calloc", "objc_realloc", "NSAllocateObject",
      "NSZoneMalloc", "NSZoneCalloc", "NSZoneRealloc", "PL_malloc", "PL_realloc",
      "PL_malloc_atomic", "PL_malloc_uncollectable",
      // GMP, Mono
      "__gmp_default_allocate", "__gmp_default_reallocate", "__gmp_tmp_reentrant_alloc",
      "monoeg_malloc", "monoeg_malloc0", "monoeg_realloc", "monoeg_try_malloc",
      "monoeg_try_realloc", "monoeg_g_calloc", "monoeg_g_memdup", "monoeg_g_strndup",
      "monoeg_g_strdup_printf", "monoeg_g_strdup_vprintf",
      // libstdc++'s C interface
      "__cxa_allocate_exception", "__cxa_get_globals",
  };
  return names;
}

const Names& StartNames() {
  static const Names& names = *new Names{
      "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_main@@GLIBC_2.34",
      "__libc_start_call_main", "generic_start_main", "start_thread", "clone", "clone3",
      "__clone", "__clone3", "__GI___clone", "__GI___clone3", "thread_start",
      "execute_native_thread_routine", "_dl_start_user", "__clone_internal",
      "pthread_create@@GLIBC_2.34",
  };
  return names;
}

// Whether it is one of those names that a program may well have for a function of its own.
bool IsPlainStartName(absl::string_view name) {
  return name == "start_thread" || name == "thread_start" || name == "clone";
}

// Frames between std::thread's start routine and the function it runs.
bool IsThreadInvoker(absl::string_view name) {
  return absl::StartsWith(name, "std::thread::_Invoker<") ||
         absl::StartsWith(name, "std::thread::_State_impl<") ||
         absl::StartsWith(name, "std::__invoke_impl<") ||
         absl::StartsWith(name, "std::__invoke<") || name == "std::execute_native_thread_routine";
}

}  // namespace

namespace {

// Of the list above: who it calls, it calls to allocate. std's functions call back.
bool IsListedAllocator(absl::string_view demangled) {
  if (AllocatorNames().contains(demangled)) return true;
  absl::string_view plain = demangled;
  if (absl::ConsumeSuffix(&plain, "@plt")) return AllocatorNames().contains(plain);
  // Parts that GCC split off and kept a name for: xmalloc.part.0, xmalloc.cold.
  const size_t dot = plain.find('.');
  return dot != absl::string_view::npos && dot > 0 &&
         AllocatorNames().contains(plain.substr(0, dot));
}

}  // namespace

bool IsAllocatorFunction(absl::string_view demangled) {
  if (IsListedAllocator(demangled)) return true;
  // This is what a Rust program wraps around an allocator: #[global_allocator].
  if (absl::StrContains(demangled, " as core::alloc::global::GlobalAlloc>::")) return true;
  if (absl::EndsWith(demangled, "@plt")) return false;
  const absl::string_view name = QualifiedName(demangled);
  return absl::StartsWith(name, "operator new") || absl::StartsWith(name, "operator delete") ||
         absl::StartsWith(name, "std::") || absl::StartsWith(name, "__gnu_cxx::") ||
         absl::StartsWith(name, "__cxxabiv1::") || absl::StartsWith(name, "node::Malloc") ||
         absl::StartsWith(name, "node::UncheckedMalloc") ||
         absl::StartsWith(name, "node::Realloc") ||
         absl::StartsWith(name, "node::UncheckedRealloc") ||
         absl::StartsWith(name, "CMEM_$$_C") ||  // Free Pascal's unit that calls malloc
         AllocatorNames().contains(name);
}

bool IsStartFunction(absl::string_view demangled) { return StartNames().contains(demangled); }

bool IsSystemModule(absl::string_view path) {
  // "/usr/bin/../lib/libx.so" is how a RUNPATH of $ORIGIN/../lib names it.
  std::string plain;
  if (absl::StrContains(path, "/../")) {
    plain = std::filesystem::path(std::string(path)).lexically_normal().string();
    path = plain;
  }
  for (const absl::string_view prefix : {"/lib/", "/lib64/", "/lib32/", "/usr/lib/", "/usr/lib64/",
                                         "/usr/lib32/", "/usr/libexec/", "linux-vdso", "[vdso]"}) {
    if (absl::StartsWith(path, prefix)) return true;
  }
  return false;
}

bool RunsConstructors(absl::string_view function) {
  return function == "call_init" || function == "_dl_init";
}

bool IsLibc(absl::string_view path) {
  const absl::string_view file = FileNameOf(path);
  return absl::StartsWith(file, "libc.so") || absl::StartsWith(file, "libc-");
}

namespace {

// The libraries of glibc and musl in which a program and its threads start.
bool IsStartModule(absl::string_view path) {
  const absl::string_view file = FileNameOf(path);
  return IsLibc(path) || absl::StartsWith(file, "libpthread") ||
         absl::StartsWith(file, "libc.musl") || absl::StartsWith(file, "ld-") ||
         absl::StartsWith(file, "ld.so");
}

bool IsStart(const Frame& frame) { return IsStartOf(frame.function, frame.module); }

// clone and start_thread of a static executable lie in the program's own file: known by each other.
bool IsStaticStart(absl::Span<const Frame* const> stack, size_t at, bool is_outermost) {
  const Frame& frame = *stack[at];
  if (!IsPlainStartName(frame.function)) return false;
  if (frame.function != "start_thread") {
    return is_outermost && at > 0 && stack[at - 1]->function == "start_thread";
  }
  return !is_outermost && stack[at + 1]->module == frame.module;
}

}  // namespace

bool IsStartOf(absl::string_view function, absl::string_view module) {
  return IsStartFunction(function) && (!IsPlainStartName(function) || IsStartModule(module));
}

FrameRole RoleOf(const Frame& frame, uint32_t module_flags) {
  if (module_flags & format::kModuleTracer) return FrameRole::kAllocator;
  if (!frame.function.empty()) {
    if (IsStart(frame)) return FrameRole::kStart;
    if (IsThreadInvoker(QualifiedName(frame.function))) return FrameRole::kInvoker;
    if (IsAllocatorFunction(frame.function) || IsRustLibraryFunction(frame)) {
      return FrameRole::kAllocator;
    }
  }
  if (module_flags & format::kModuleExecutable) return FrameRole::kProject;
  // What a just-in-time compiler made: an address, another one in each run.
  if (frame.function.empty() && frame.module.empty()) return FrameRole::kSystem;
  return IsSystemModule(frame.module) ? FrameRole::kSystem : FrameRole::kProject;
}

namespace {

// std::thread's way to its function; libstdc++ comes without a symbol for its part.
bool IsInvoker(const Frame& frame) {
  if (frame.role == FrameRole::kInvoker) return true;
  const size_t slash = frame.module.rfind('/');
  return frame.role == FrameRole::kSystem && frame.function.empty() &&
         slash != std::string::npos &&
         absl::StartsWith(absl::string_view(frame.module).substr(slash + 1), "libstdc++.");
}

}  // namespace

namespace {

// Whether the program is of a package; IsSystemModule() says the same of libraries.
bool IsInstalledProgram(absl::string_view path) {
  for (const absl::string_view prefix :
       {"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/games/"}) {
    if (absl::StartsWith(path, prefix)) return true;
  }
  return IsSystemModule(path);
}

// Whether it is a library that every program is built on.
bool IsBaseLibrary(absl::string_view path) {
  const absl::string_view file = FileNameOf(path);
  for (const absl::string_view name :
       {"ld-", "ld.so", "libc.", "libc-", "libm.", "libm-", "libdl.", "libdl-", "librt.",
        "libpthread", "libresolv", "libstdc++.", "libgcc_s.", "libc++", "linux-vdso", "[vdso]"}) {
    if (absl::StartsWith(file, name)) return true;
  }
  return false;
}

}  // namespace

bool IsOfABareProgram(const Frame& frame) {
  return frame.role == FrameRole::kProject && frame.file.empty() &&
         IsInstalledProgram(frame.module);
}

bool IsOfAnExtension(const Frame& frame) {
  return frame.role == FrameRole::kProject && !frame.module.empty() &&
         !IsInstalledProgram(frame.module);
}

bool IsOfASystemLibrary(const Frame& frame) {
  return frame.role == FrameRole::kSystem && !frame.module.empty() && !IsBaseLibrary(frame.module);
}

size_t StartBegin(absl::Span<const Frame* const> stack) {
  size_t begin = stack.size();
  // Outside of libc's start code there is only _start or clone, with or without a name.
  while (begin > 0 && (stack[begin - 1]->function.empty() ||
                       stack[begin - 1]->role == FrameRole::kMarker)) {
    --begin;
  }
  const size_t end = begin;
  while (begin > 0 && (stack[begin - 1]->role == FrameRole::kStart ||
                       IsStaticStart(stack, begin - 1, begin == end))) {
    --begin;
  }
  return begin == end ? stack.size() : begin;
}

namespace {

// Frames without names from `at` on up to a listed allocator of their own file: parts of it, for
// which a library without debug information has no names. How many they are; 0: they are none.
size_t NamelessWithin(absl::Span<const Frame* const> stack, size_t at, size_t end) {
  const std::string& module = stack[at]->module;
  size_t i = at;
  while (i < end && stack[i]->function.empty() && stack[i]->module == module) ++i;
  return i > at && i < end && !module.empty() && stack[i]->module == module &&
                 stack[i]->role == FrameRole::kAllocator && IsListedAllocator(stack[i]->function)
             ? i - at
             : 0;
}

// Of an installed program the caller may be elsewhere: in an extension that an interpreter has
// loaded; or, if the program is no more than a main() around its package's library, in that.
void FindCallerOfInstalled(absl::Span<const Frame* const> stack, Cut* cut) {
  if (cut->caller == cut->end) return;
  const Frame& caller = *stack[cut->caller];
  if (caller.role != FrameRole::kProject || !IsInstalledProgram(caller.module)) return;
  const bool is_bare = caller.file.empty();
  bool is_alone = true;
  for (size_t i = cut->caller + 1; i < cut->end && (is_alone || is_bare); ++i) {
    const Frame& frame = *stack[i];
    if (frame.role != FrameRole::kProject) continue;
    is_alone = false;
    // Nearly all frames are of the program itself: that is asked first.
    if (is_bare && frame.module != caller.module && IsOfAnExtension(frame)) {
      cut->caller = i;
      return;
    }
  }
  if (!is_alone) return;
  size_t library = cut->begin;
  while (library < cut->caller && !IsOfASystemLibrary(*stack[library])) ++library;
  cut->is_in_library = library != cut->caller;
  cut->caller = library;
}

// A program's own operator new may do its work in functions of the program: as many as these.
constexpr size_t kMostHelpers = 4;

// How many frames from stack[at] on are an operator new and the helpers that it called; 0: none.
size_t WithinOperatorNew(absl::Span<const Frame* const> stack, size_t at, size_t end) {
  for (size_t i = at; i < std::min(at + kMostHelpers + 1, end); ++i) {
    const Frame& frame = *stack[i];
    if (frame.role == FrameRole::kAllocator &&
        absl::StartsWith(frame.function, "operator new")) {
      return IsSystemModule(frame.module) ? 0 : i + 1 - at;  // a new-handler is no helper
    }
  }
  return 0;
}

}  // namespace

Cut CutStack(absl::Span<const Frame* const> stack, Nameless nameless) {
  const auto is_inner = [](const Frame& frame) {
    return frame.role == FrameRole::kAllocator || frame.role == FrameRole::kInvoker;
  };
  const auto inner_at = [&](size_t at, size_t end) {
    if (is_inner(*stack[at])) return size_t{1};
    if (nameless == Nameless::kFrames) return size_t{0};
    const size_t parts = NamelessWithin(stack, at, end);
    return parts != 0 ? parts : WithinOperatorNew(stack, at, end);
  };
  Cut cut;
  const size_t start = cut.end = StartBegin(stack);
  while (start < stack.size() && cut.end > 0 && IsInvoker(*stack[cut.end - 1])) --cut.end;
  for (size_t inner = 1; inner != 0 && cut.begin < cut.end; cut.begin += inner) {
    inner = inner_at(cut.begin, cut.end);
  }
  cut.via =
      cut.begin > 0 && absl::StartsWith(QualifiedName(stack[cut.begin - 1]->function), "std::")
          ? cut.begin - 1
          : cut.begin;
  // Nothing but allocators (a static std::string, say): then they are the story.
  if (cut.begin == cut.end || stack[cut.begin]->role == FrameRole::kMarker) {
    cut.begin = cut.via = 0;
  }
  if (cut.end == 0) cut.end = stack.size();
  cut.caller = cut.begin;
  for (size_t i = cut.begin; i < cut.end; ++i) {
    if (stack[i]->role == FrameRole::kProject) {
      cut.caller = i;
      break;
    }
  }
  FindCallerOfInstalled(stack, &cut);
  return cut;
}

}  // namespace memtrace::report::names
