// arch: all that the library knows of the processor it runs on.
//
// A port is one file like x86_64.h, and a line here. It gives, in namespace arch:
//
//   Ticks, TicksInOrder, kClockSource   the counter that is the clock of events
//   kSetCounterFaults, kCounterFaults   how a program forbids that
//   kVdsoClockGettime                   the other clocks
//   FinishInstructions                  around other clocks
//   SubtractReaches                     the step of a call that is not sampled
//   MEMTRACE_DEFINE_SYSCALL             the exported syscall(), which may return twice
//   RawSystemCall, ThreadPointer        without errno; the end of a thread's stack
//   CloneAndCall                        a process on a stack of its own
//   Register, kRegisterCount            DWARF numbers of registers
//   MEMTRACE_ALIGNS_STACK               for functions that are called with any stack pointer
//   CurrentRegisters, KeptRegister      those a function must keep, of this moment
//   kReturnSlot, kFrameAddressToCfa     where calls put what
//   kAddressBits, kPageBytes
//   kUcontextOffset, kTrampoline...,    the kernel's signal frame, and code without
//   EveryProtectionKey                  memory that the program has locked to itself
//   IsSignalTrampoline, IsFiberEnd,     CFI that is known by its bytes
//   PltCfaOffset, IsFinalized,
//   IsLeaveRealigned, ...
//   KernelAction, MEMTRACE_DEFINE_RESTORER   a signal handler without libc
//   UcontextRegister, UcontextPc,       a signal's frame, and a call of the kernel in it
//   InterruptedCall, IsJustBehindCall,
//   CallNumberAt,
//   CallArgument, CallResult, EndCall,
//   MakeCallAgain
//   MEMTRACE_DEFINE_CALL_AGAIN,         a call whose handlers know whose it is
//   CallAgainOwner
//   kRedZoneBytes                       what of a stopped thread is its function's own
//   MEMTRACE_OBSERVED_JUMP,             functions that look at a call and jump on
//   MEMTRACE_SUBSTITUTING_JUMP
//   MEMTRACE_KEPT_REGISTERS_ON_STACK
//   CallOnStack, kLibunwindFile,        for the cross-check
//   MEMTRACE_LIBUNWIND_NAME
//
// What stays to be done beside that for a processor whose calls leave the return address
// in a register (aarch64): the first step of a walk takes it from there, and FrameRule
// (unwind/frame_rule.h) needs a flag for it; signed return addresses are compared as they
// are and stripped where a key is made. docs/stack-capture.md, "Another processor".

#ifndef MEMTRACE_PRELOAD_ARCH_ARCH_H_
#define MEMTRACE_PRELOAD_ARCH_ARCH_H_

#if defined(__x86_64__)
#include "preload/arch/x86_64.h"
#else
#error "memtrace runs on x86-64 only: preload/arch/arch.h tells what another processor needs"
#endif

namespace memtrace {
namespace unwind {
using namespace arch;
}
}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_ARCH_ARCH_H_
