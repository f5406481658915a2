// UnseenCalls: which modules of the process call an allocator past this library, so that blocks are
// not in the trace, or look live that were freed.
//
// The loader's answers say it: a module has a slot for each function that it calls, in which the
// loader has put where that is. A slot for malloc that leads to libc's, because the module was
// opened with RTLD_DEEPBIND or linked with -Bsymbolic; one for __libc_malloc; one for mallocx or
// C++'s operator new that leads to the allocator behind us. What is bound at the first call
// counts from that call on.
//
// Not seen: what dlsym() found; calls within one module; modules that have been unloaded, or are in
// a namespace of their own (dlmopen), which is another list of the loader's.
//
// In who scans: the copy of the process, or, while all other threads stand, the process. Reads the
// loader's list and files that are mapped.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_UNSEEN_CALLS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_UNSEEN_CALLS_H_

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/vtable_test.h"

namespace memtrace {

// What a function of an allocator does. The library does not see it where it does not
// stand in for the function.
struct AllocatorCall {
  bool allocates = false, frees = false;
};
AllocatorCall CallByName(std::string_view name);

class UnseenCalls {
 public:
  UnseenCalls(const ScanMappings& mappings, VtableTest& files);

  // visit(begin, end, call) for each module that makes such calls.
  template <typename Visit>
  void ForEach(Visit visit) {
    if (allocator_bytes_ == 0 || &_r_debug == nullptr) return;
    // Nobody goes on with the list while it is changed here; a limit, for what may
    // be read is only memory.
    int left = kMostModules;
    Readable list;
    for (const link_map* map = _r_debug.r_map; left > 0 && CanLoad(map, list);
         map = map->l_next, --left) {
      uintptr_t begin = 0, end = 0;
      const AllocatorCall call = CallsOf(*map, &begin, &end);
      if (call.allocates || call.frees) visit(begin, end, call);
    }
  }

 private:
  static constexpr int kMostModules = 1 << 16;

  AllocatorCall CallsOf(const link_map& map, uintptr_t* begin, uintptr_t* end);
  struct Symbols {
    const ElfW(Sym)* table = nullptr;
    const char* names = nullptr;
    size_t foreign = SIZE_MAX;  // those from here on the module defines itself
  };
  size_t ForeignIn(const uint32_t* hash_table);
  void LookAt(const ElfW(Rela) * slots, size_t bytes, bool of_calls, const Symbols& symbols,
              uintptr_t bias, AllocatorCall* calls);

  // The memory around the last place that was read which is known to be readable: the next
  // place is mostly in it too.
  struct Readable {
    uintptr_t begin = 0, end = 0;
  };
  bool IsReadable(uintptr_t address, size_t bytes, Readable& last) {
    if (address - last.begin < last.end - last.begin && last.end - address >= bytes) return true;
    return FindReadable(address, bytes, last);
  }
  bool FindReadable(uintptr_t address, size_t bytes, Readable& last);
  template <typename T>
  bool CanLoad(const T* object, Readable& last) {
    return IsReadable(reinterpret_cast<uintptr_t>(object), sizeof(T), last);
  }

  const ScanMappings& mappings_;
  VtableTest& files_;  // asks the kernel whether a page of a file can be read
  uintptr_t allocator_begin_ = 0;
  size_t allocator_bytes_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_UNSEEN_CALLS_H_
