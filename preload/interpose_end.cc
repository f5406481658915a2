// The end of main and of the process. What the memory scans before the exit handlers need
// (preload/leak_scan/leak_scan.h) are jumps, so that no frame of ours is on the stacks. The
// functions behind which no handler of ours is called tell the end themselves.

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/arch/arch.h"
#include "preload/exported.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/next_functions.h"
#include "preload/process.h"
#include "preload/process_end.h"
#include "preload/sys.h"

MEMTRACE_OBSERVED_JUMP("exit", "memtrace_before_exit", "memtrace_real_exit");

namespace {

using Main = int (*)(int, char**, char**);
constinit Main g_main = nullptr;

// In place of main where it matters when that returns. A frame of ours: under
// MEMTRACE_LEAK_CHECK=exit-early and both alone.
int CallMain(int argc, char** argv, char** environment) {
  const int status = g_main(argc, argv, environment);
  memtrace::ScanAtExit(memtrace::format::ScanReason::kExitEarly,
                       {MEMTRACE_KEPT_REGISTERS_ON_STACK()});
  return status;
}

}  // namespace

// The jumps need these names; they are local to the library (exports.map).
extern "C" {
[[gnu::used]] void* memtrace_real_libc_start_main = nullptr;
}

extern "C" [[gnu::used]] ENTERED Main memtrace_before_main(Main main) {
  memtrace_real_libc_start_main = reinterpret_cast<void*>(memtrace::Next().__libc_start_main);
  if (!memtrace::g_process.config.leak_check.early) return main;
  g_main = main;
  return &CallMain;
}

MEMTRACE_SUBSTITUTING_JUMP("__libc_start_main", "memtrace_before_main",
                           "memtrace_real_libc_start_main");

EXPORTED void _exit(int status) {
  memtrace::EndAtOnce(status, MEMTRACE_KEPT_REGISTERS_ON_STACK());
  for (;;) memtrace::sys::Call(SYS_exit_group, status);
}

EXPORTED void _Exit(int status) {
  memtrace::EndAtOnce(status, MEMTRACE_KEPT_REGISTERS_ON_STACK());
  for (;;) memtrace::sys::Call(SYS_exit_group, status);
}

// The end is told by the last of its handlers, if that is still to come.
EXPORTED void quick_exit(int status) {
  memtrace::QuickExitIsCalled(status, MEMTRACE_KEPT_REGISTERS_ON_STACK());
  memtrace::Next().quick_exit(status);
  __builtin_unreachable();
}
