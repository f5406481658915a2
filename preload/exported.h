// EXPORTED: begins the definition of a function that the program calls.
//
// Its stack pointer need not be what the calling convention asks for: code in assembly, and
// whatever was compiled with -mpreferred-stack-boundary=3, gets away with calling glibc so. Ours
// would not where the compiler keeps 16 bytes on the stack by one instruction. So each way into the
// library from the program aligns it: the exported functions, what they jump to, what libc calls at
// the exit, and what include/memtrace.h calls by pointer (ENTERED). The caller's registers and its
// frame are where they are without (call_site.h).

#ifndef MEMTRACE_PRELOAD_EXPORTED_H_
#define MEMTRACE_PRELOAD_EXPORTED_H_

#include "preload/arch/arch.h"

#define ENTERED MEMTRACE_ALIGNS_STACK
#define EXPORTED extern "C" __attribute__((visibility("default"), noinline)) ENTERED

#endif  // MEMTRACE_PRELOAD_EXPORTED_H_
