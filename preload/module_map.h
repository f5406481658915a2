// ModuleMap: the files that are mapped as code, and their instances.
//
// Modules that are there before the program begins are permanent: read once,
// numbered 1, 2, ..., and named in frames by 0. Every other module gets an
// instance number when the first stack goes through it, and loses it when dlclose
// unmaps it; the same file loaded again is another instance. So a frame keeps its
// name whatever is mapped at its address later.
//
// dlopen is not wrapped (it would break the search by RUNPATH), so new modules
// are met on the event path: InstanceOf() takes no lock and calls no loader
// function. It reads the module's own headers in memory, which cannot go away:
// one of its frames is on the caller's stack. A fork child, which reads them later, asks first
// whether the module is still there (_dl_find_object(), which takes no lock).
//
// docs/lifecycle.md tells what happens when a module is unloaded unseen.

#ifndef MEMTRACE_PRELOAD_MODULE_MAP_H_
#define MEMTRACE_PRELOAD_MODULE_MAP_H_

#include <dlfcn.h>

#include <cstdint>

namespace memtrace {

// Reads the permanent modules and writes their records. Once, before the first
// event; loader functions are called here.
void ReadPermanentModules();

// Fork child: writes the records of all modules again, into the new trace. Asks
// the loader nothing: another thread may have held its lock at the fork.
void WriteModulesAgain();

// See unwind::InstanceOfFunction.
uint16_t InstanceOf(const dl_find_object* object, uintptr_t pc, bool* cacheable);

// Whether dlopen() of `file` may load a module. Not if that is there already, or there is no such
// file; where neither is known, it may. The loader is not asked, for it would have to take a lock.
bool WouldBeLoaded(const char* file);

// Before a module is loaded: it may be put where one was that somebody unloaded past the wrapper
// (who got libc's dlclose by dlsym).
void NoticeUnseenCloses();

// dlclose, as the wrapper needs it.
int CloseModule(int (*real_dlclose)(void*), void* handle);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_MODULE_MAP_H_
