// DWARF expressions, as far as CFI may use them: numbers, registers, memory,
// arithmetic and jumps. Bounded in steps and depth, reads by a StackReader only.
//
// Threads: any, in any state. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_DWARF_EXPRESSION_H_
#define MEMTRACE_PRELOAD_UNWIND_DWARF_EXPRESSION_H_

#include <cstdint>

#include "preload/unwind/byte_reader.h"
#include "preload/unwind/registers.h"

namespace memtrace::unwind {

enum class EvalStatus : uint8_t {
  kOk,
  kUnreadable,   // a word it asked for cannot be read
  kUnknown,      // a register it asked for is not known in this frame
  kUnsupported,  // an operation CFI has no use for, or the expression is broken
};

// `first` is on the stack when it begins: the CFA for a register's expression,
// and for the CFA itself nothing (null).
EvalStatus EvaluateExpression(ByteReader expression, const Registers& registers,
                              StackReader* reader, const uint64_t* first, uint64_t* result);

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_DWARF_EXPRESSION_H_
