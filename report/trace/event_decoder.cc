#include "report/trace/event_decoder.h"

#include "format/imported.h"

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
    case ExtendedType::kCustomAlloc:
      return low(4);
    case ExtendedType::kPoolCreate:
    case ExtendedType::kPoolDestroy:
    case ExtendedType::kPhase:
    case ExtendedType::kRecordingStopped:
    case ExtendedType::kShmdt:
      return low(2);
    case ExtendedType::kUsage:
    case ExtendedType::kThreadName:
    case ExtendedType::kMunmapFailed:
    case ExtendedType::kCustomFree:
    case ExtendedType::kIgnoreBlock:
    case ExtendedType::kLeaksDisabled:
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
    case AllocFunction::kPoolAlloc: return "pool_alloc";
    case AllocFunction::kBlockAlloc: return "block_alloc";
  }
  return format::ImportedFunctionName(function);
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
    case ExtendedType::kPoolCreate: return "pool-create";
    case ExtendedType::kPoolDestroy: return "pool-destroy";
    case ExtendedType::kCustomAlloc: return "custom-alloc";
    case ExtendedType::kCustomFree: return "custom-free";
    case ExtendedType::kIgnoreBlock: return "ignore";
    case ExtendedType::kLeaksDisabled: return "leaks-disabled";
    case ExtendedType::kPhase: return "phase";
    case ExtendedType::kRecordingStopped: return "recording-stopped";
  }
  return nullptr;
}

}  // namespace memtrace::report
