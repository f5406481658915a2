// The memory that a command may take for a trace: three quarters of what the machine, or
// the container, has. How much that is for one trace nobody knows before; beyond it the
// kernel would end some process, perhaps another one.
//
// Above the limit allocation fails, with std::bad_alloc, and main() says so.

#ifndef MEMTRACE_REPORT_BASE_MEMORY_LIMIT_H_
#define MEMTRACE_REPORT_BASE_MEMORY_LIMIT_H_

#include <cstdint>

namespace memtrace::report {

// Limits the memory of this process and its children; a lower limit that is set already stays. Not
// to be called by `memtrace run`, whose child is the user's program.
void LimitMemory();

// The limit in force, in bytes; UINT64_MAX none.
uint64_t MemoryLimit();

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_MEMORY_LIMIT_H_
