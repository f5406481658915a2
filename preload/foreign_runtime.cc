#include "preload/foreign_runtime.h"

#include <gnu/libc-version.h>
#include <link.h>

#include "preload/exported_symbol.h"
#include "preload/text.h"

namespace memtrace {
namespace {

struct Runtime {
  std::string_view library;  // how the file name of its shared form begins
  std::string_view clang;    // the same of clang's
  const char* symbol;        // what a program with the static form exports, built by clang
  std::string_view why;
};

#define MEMTRACE_SANITIZED(name)                                                          \
  "this program is built with " name ", which replaces the allocator itself; it runs "    \
  "untraced (build it without -fsanitize)"
constexpr Runtime kRuntimes[] = {
    {"libasan.so", "libclang_rt.asan", "__asan_init", MEMTRACE_SANITIZED("AddressSanitizer")},
    {"libtsan.so", "libclang_rt.tsan", "__tsan_init", MEMTRACE_SANITIZED("ThreadSanitizer")},
    {"libmsan.so", "libclang_rt.msan", "__msan_init", MEMTRACE_SANITIZED("MemorySanitizer")},
    {"libhwasan.so", "libclang_rt.hwasan", "__hwasan_init",
     MEMTRACE_SANITIZED("HWAddressSanitizer")},
    {"liblsan.so", "libclang_rt.lsan", "__lsan_init", MEMTRACE_SANITIZED("LeakSanitizer")},
};
// gcc's static runtimes hide their own names and export what they intercept. All of these
// together nobody else does (report/run/elf_facts.cc has the same).
constexpr const char* kIntercepted[] = {"malloc", "pthread_create", "pthread_join", "sigaction",
                                        "__libc_memalign"};
constexpr std::string_view kSomeSanitizer = MEMTRACE_SANITIZED("a sanitizer");

// Every tool of Valgrind preloads the core's library; a tool that replaces the allocator preloads
// another one for that. Under the other tools (callgrind, none) this library works like any code.
constexpr std::string_view kValgrindLibrary = "vgpreload_", kValgrindCore = "vgpreload_core";
constexpr std::string_view kValgrind =
    "this program runs under Valgrind, which replaces the allocator itself; it runs untraced "
    "(use one of the two at a time)";
constexpr std::string_view kNotGlibc =
    "this program does not use glibc, which libmemtrace.so needs; it runs untraced (build it "
    "for glibc)";

std::string_view FileName(const link_map* map) {
  const std::string_view path = map->l_name != nullptr ? map->l_name : "";
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : From(path, slash + 1);
}

}  // namespace

std::string_view WhyNotInThisProcess() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {};  // a test of our own, whose parts are to be tested with the sanitizer
#endif
  if (gnu_get_libc_version == nullptr || &_r_debug == nullptr) return kNotGlibc;
  const link_map* const program = _r_debug.r_map;
  for (const link_map* map = program; map != nullptr; map = map->l_next) {
    const std::string_view name = FileName(map);
    if (name.starts_with(kValgrindLibrary) && !name.starts_with(kValgrindCore)) return kValgrind;
    for (const Runtime& runtime : kRuntimes) {
      if (name.starts_with(runtime.library) || name.starts_with(runtime.clang)) return runtime.why;
    }
  }
  if (program == nullptr || !Exports(program, "malloc")) return {};
  for (const Runtime& runtime : kRuntimes) {
    if (Exports(program, runtime.symbol)) return runtime.why;
  }
  for (const char* name : kIntercepted) {
    if (!Exports(program, name)) return {};
  }
  return kSomeSanitizer;
}

bool IsUnderValgrind() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    if (FileName(map).starts_with(kValgrindCore)) return true;
  }
  return false;
}

}  // namespace memtrace
