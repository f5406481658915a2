// What modules define for others. Read from their hash tables as the loader does, without calling
// anything: dlsym() takes locks, and allocates for a name that is not there.

#ifndef MEMTRACE_PRELOAD_EXPORTED_SYMBOL_H_
#define MEMTRACE_PRELOAD_EXPORTED_SYMBOL_H_

#include <link.h>

namespace memtrace {

// Does a loaded module define this name? `map` of the loader's list, relocated; not the vDSO's.
bool Exports(const link_map* map, const char* name);

// The kernel's function of that name in the vDSO; null: there is none.
void* FindInVdso(const char* name);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_EXPORTED_SYMBOL_H_
