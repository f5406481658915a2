// What a trace that was made from another tool's log has and the library never writes.
// docs/import.md tells where it comes from.

#ifndef MEMTRACE_FORMAT_IMPORTED_H_
#define MEMTRACE_FORMAT_IMPORTED_H_

#include <string_view>

#include "format/event_words.h"

namespace memtrace::format {

// Further AllocFunctions: the kernel's.
inline constexpr auto kKmalloc = static_cast<AllocFunction>(12);
inline constexpr auto kKmallocNode = static_cast<AllocFunction>(13);
inline constexpr auto kKmemCacheAlloc = static_cast<AllocFunction>(14);
inline constexpr auto kKmemCacheAllocNode = static_cast<AllocFunction>(15);

// nullptr: none of these.
constexpr const char* ImportedFunctionName(AllocFunction function) {
  switch (static_cast<unsigned>(function)) {
    case 12: return "kmalloc";
    case 13: return "kmalloc_node";
    case 14: return "kmem_cache_alloc";
    case 15: return "kmem_cache_alloc_node";
    default: return nullptr;
  }
}

// Where the log tells a function and there is no file to look it up in, the module of a frame
// is "[kernel]/do_something": its bias is the address of the function, its offsets are in it.
constexpr bool IsFunctionModule(std::string_view path) {
  return path.size() > 3 && path[0] == '[' && path.find("]/") != path.npos;
}

// The module of frames that are in no function of the log: their offsets are the kernel's
// addresses. Events have 48 bits of an address; the bits above are like the highest of these.
inline constexpr std::string_view kKernelModule = "[kernel]";
constexpr uint64_t KernelAddress(uint64_t offset) {
  return (offset >> 47 & 1) != 0 ? offset | ~kAddressMask : offset;
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_IMPORTED_H_
