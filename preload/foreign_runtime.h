// ForeignRuntime: what is in this process that does not bear a second tracer.
//
// The sanitizers and Valgrind replace the allocator themselves, and a libc that is not
// glibc lacks what this library stands on. There it stays off: the calls go on to the next
// definition, as if nothing had been preloaded.
//
// Asked before anything else, on the first interposed call. That may be while a sanitizer
// still looks for the functions it wraps: calling libc then ends in a null pointer of its.
// So the answer comes from memory alone: the loader's list of modules, and the symbol table
// of the program.

#ifndef MEMTRACE_PRELOAD_FOREIGN_RUNTIME_H_
#define MEMTRACE_PRELOAD_FOREIGN_RUNTIME_H_

#include <string_view>

namespace memtrace {

// The line for the user without its beginning: what it is, and the cure. Empty: nothing.
std::string_view WhyNotInThisProcess();

// Valgrind is here, whatever its tool.
bool IsUnderValgrind();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FOREIGN_RUNTIME_H_
