// Exports(): does a loaded module define this name for others? Read from its hash table as
// the loader does, without calling anything: dlsym() takes locks, and allocates for a name
// that is not there.

#ifndef MEMTRACE_PRELOAD_EXPORTED_SYMBOL_H_
#define MEMTRACE_PRELOAD_EXPORTED_SYMBOL_H_

#include <link.h>

namespace memtrace {

// `map` of the loader's list, relocated; not the vDSO's. False also where the module has no
// DT_GNU_HASH: what linkers write unless told otherwise.
bool Exports(const link_map* map, const char* name);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_EXPORTED_SYMBOL_H_
