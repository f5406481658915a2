// dlopen and dlmopen are looked at and not wrapped. Both search for a library as their
// caller's file says (RUNPATH), and the caller is who their return address belongs to. So
// what is exported here notes the call and jumps to the real function, with the stack as the
// program made it.
//
// What a library gets from a malloc that is not ours leaves no event. Which one that may be
// is known here: one that binds its own libc's names first (RTLD_DEEPBIND), or one with a
// libc of its own (another namespace). The flag stays: without it the program would be
// another one. It says nothing of a library that is there already: cwrap's wrappers open libc
// itself so. Whether the call succeeds is not known, for it is looked at before; so the note of
// a name that is searched for may be of a library that was not found.
//
// dlclose does not ask who calls, and is wrapped: what it unloads is known behind it.

#include <dlfcn.h>

#include "format/notes.h"
#include "preload/arch/arch.h"
#include "preload/coverage_notes.h"
#include "preload/exported.h"
#include "preload/module_map.h"
#include "preload/next_functions.h"
#include "preload/recorder.h"
#include "preload/text.h"
#include "preload/unwind/module_epoch.h"

// The jumps need these names; they are local to the library (exports.map).
extern "C" {
[[gnu::used]] void* memtrace_next_dlopen = nullptr;
[[gnu::used]] void* memtrace_next_dlmopen = nullptr;
}

namespace {

template <typename... Parts>
void AddNote(const Parts&... parts) {
  const memtrace::Section section;
  if (!section) return;
  memtrace::Text<512> note;
  (note << ... << parts);
  memtrace::AddCoverageNote(note.view());
}

// The end of a path says more than its beginning.
std::string_view Shown(const char* file) {
  constexpr size_t kMaxShown = 250;
  const std::string_view path = file;
  return path.size() <= kMaxShown ? path : memtrace::From(path, path.size() - kMaxShown);
}

}  // namespace

extern "C" [[gnu::used]] ENTERED void memtrace_before_dlopen(const char* file, int mode) {
  memtrace_next_dlopen = reinterpret_cast<void*>(memtrace::Next().dlopen);
  memtrace::NoticeUnseenCloses();
  if (file == nullptr || (mode & (RTLD_DEEPBIND | RTLD_NOLOAD)) != RTLD_DEEPBIND ||
      !memtrace::WouldBeLoaded(file)) {
    return;
  }
  memtrace::unwind::ExpectUnseenCloses();
  AddNote(Shown(file), memtrace::format::kOpenedWithDeepBind,
          ": what it allocates and frees by libc's malloc is not in this trace");
}

extern "C" [[gnu::used]] ENTERED void memtrace_before_dlmopen(Lmid_t space, const char* file, int) {
  memtrace_next_dlmopen = reinterpret_cast<void*>(memtrace::Next().dlmopen);
  memtrace::NoticeUnseenCloses();
  if (file == nullptr || space == LM_ID_BASE) return;
  memtrace::unwind::ExpectUnseenCloses();
  AddNote(Shown(file), " was opened in a namespace of its own, with a libc of its own: what is "
          "allocated there is not in this trace");
}

MEMTRACE_OBSERVED_JUMP("dlopen", "memtrace_before_dlopen", "memtrace_next_dlopen");
MEMTRACE_OBSERVED_JUMP("dlmopen", "memtrace_before_dlmopen", "memtrace_next_dlmopen");

EXPORTED int dlclose(void* handle) {
  return memtrace::CloseModule(memtrace::Next().dlclose, handle);
}
