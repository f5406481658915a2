// StackUnwinder: the return addresses of this thread, exactly, by CFI.
//
// This is the interface between the event path and the stack engine. Today the
// engine walks every stack by its per-PC rule table (rule_table.h) and falls
// back to the generic CFI interpreter (cfi_unwinder.h); the memo of whole stacks
// and the join (docs/stack-capture.md) go in front of the walk, behind this file.
//
// Threads: one UnwinderState belongs to one thread. The rule table is shared and
// lock-free. Nothing here takes a lock, allocates or calls the loader; it calls
// _dl_find_object, which is async-signal-safe.

#ifndef MEMTRACE_PRELOAD_UNWIND_STACK_UNWINDER_H_
#define MEMTRACE_PRELOAD_UNWIND_STACK_UNWINDER_H_

#include <cstddef>
#include <cstdint>

#include "format/trace_format.h"

namespace memtrace::unwind {

// Where to begin: the caller of the interposed function, at its call.
struct CallSite {
  uintptr_t pc;   // return address into the caller
  uintptr_t cfa;  // its stack pointer after the return
  uintptr_t rbp;  // its frame pointer register at the call
};

// A step of a stack. `key` is what the trie and the trace know of it: the
// address in the low 48 bits, the module instance in the high 16 (0 permanent).
struct StackFrame {
  uint64_t key;
};
constexpr uint64_t PcOf(uint64_t key) { return key & ((uint64_t{1} << 48) - 1); }
constexpr uint32_t InstanceOf(uint64_t key) { return static_cast<uint32_t>(key >> 48); }

inline constexpr size_t kMaxFrames = 1024;

struct UnwindResult {
  size_t frames = 0;  // written, innermost first
  format::StackMarker marker = format::StackMarker::kNone;  // why it ended early
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_UNWINDER_H_
