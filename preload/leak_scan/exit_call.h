// ExitCall: what the program called exit() with, and from where: what it held in registers, and
// where its stack was, when it ended. The scan at the exit looks from there on.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_CALL_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_CALL_H_

#include <cstdint>

#include "preload/leak_scan/leak_scan.h"

namespace memtrace {

// At load: finds libc's exit(), which ours jumps to.
void FindExit();

// The registers and the stack pointer at the call of exit() by the thread that is in the exit
// handler with this return address, caller's stack pointer and frame pointer.
ScanCaller CallerOfExit(uintptr_t pc, uintptr_t stack_pointer, uintptr_t frame_pointer);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_CALL_H_
