#include "report/event_decoder.h"

namespace memtrace::report {

using format::AllocFunction;
using format::ExtendedType;

uint32_t ExtendedEvent::slot() const {
  switch (type()) {
    case ExtendedType::kMmap:
      return high(4);
    case ExtendedType::kMremap:
      return high(5);
    case ExtendedType::kMunmap:
    case ExtendedType::kBrk:
    case ExtendedType::kHeapGrowth:
    case ExtendedType::kArenaGrowth:
      return low(3);
    case ExtendedType::kShmat:
      return low(4);
    case ExtendedType::kShmdt:
      return low(2);
    case ExtendedType::kUsage:
    case ExtendedType::kThreadName:
    case ExtendedType::kMunmapFailed:
      break;
  }
  return format::kNoSlot;
}

const char* NameOf(AllocFunction function) {
  switch (function) {
    case AllocFunction::kMalloc: return "malloc";
    case AllocFunction::kCalloc: return "calloc";
    case AllocFunction::kRealloc: return "realloc";
    case AllocFunction::kReallocarray: return "reallocarray";
    case AllocFunction::kPosixMemalign: return "posix_memalign";
    case AllocFunction::kAlignedAlloc: return "aligned_alloc";
    case AllocFunction::kMemalign: return "memalign";
    case AllocFunction::kValloc: return "valloc";
    case AllocFunction::kPvalloc: return "pvalloc";
  }
  return "alloc?";
}

const char* NameOf(ExtendedType type) {
  switch (type) {
    case ExtendedType::kMmap: return "mmap";
    case ExtendedType::kMunmap: return "munmap";
    case ExtendedType::kMremap: return "mremap";
    case ExtendedType::kBrk: return "brk";
    case ExtendedType::kShmat: return "shmat";
    case ExtendedType::kShmdt: return "shmdt";
    case ExtendedType::kHeapGrowth: return "heap";
    case ExtendedType::kArenaGrowth: return "arena";
    case ExtendedType::kUsage: return "usage";
    case ExtendedType::kThreadName: return "thread-name";
    case ExtendedType::kMunmapFailed: return "munmap-failed";
  }
  return nullptr;
}

}  // namespace memtrace::report
