// StackBounds: which stack words of this thread can be read without a fault.
//
// A walk reads only inside a StackWindow, and asks to move the window when it
// must read elsewhere:
//
//   primary stack   [lo, hi) is known to be readable and stays so while the
//                   thread lives. hi is the thread control block, or for the main
//                   thread __libc_stack_end; lo follows the stack downwards, to where
//                   the thread's descriptor says that it begins. Each page is probed
//                   once in the life of the thread. A frame of more than 64 MiB is followed
//                   where the descriptor says that all of it is stack, on the main thread where
//                   all of it is mapped: msync() tells, for a probe below that stack would make
//                   it grow.
//   any other       a fiber's stack, a sigaltstack: the window is the page of the
//                   stack pointer, and grows page by page, each probed; nothing
//                   of it is remembered, for it may be unmapped at any time.
//
// A probe is rt_sigprocmask with a `how` that does not exist: the kernel reads
// the set first (EFAULT if it cannot) and only then refuses `how` (EINVAL). It
// needs no fd and changes nothing. A kernel that answers otherwise makes every
// page unreadable that a probe would have been asked for.
//
// Limit: where the program maps memory directly below the main thread's stack, without
// a hole, and unmaps it later, `lo` may be stale.
//
// Threads: the owner of the object, also from a signal handler that interrupts
// it: both ends are single words, and [lo, hi) is true at every instant.

#ifndef MEMTRACE_PRELOAD_UNWIND_STACK_BOUNDS_H_
#define MEMTRACE_PRELOAD_UNWIND_STACK_BOUNDS_H_

#include <cstdint>

#include "format/trace_format.h"

namespace memtrace::unwind {

// Are the eight bytes at `address` readable now? One system call: rt_sigprocmask, which this
// argument makes fail after it has read, or MADV_POPULATE_READ (allowed_calls.h).
inline constexpr long kNoSuchHow = 0x7fffffff;
bool ProbeWord(uintptr_t address);
bool ProbePage(uintptr_t address);

// Which thread has the stack that the kernel made is asked when the process begins: behind a filter
// it cannot be, and without a stack of its own each walk of the main thread would have to probe.
void FindMainThread();

struct StackWindow {
  uintptr_t lo = 0;
  uintptr_t hi = 0;  // lo == hi: nothing may be read

  bool Contains(uintptr_t address) const {
    return address - lo < hi - lo && hi - address >= sizeof(uint64_t);
  }
  // The same of an address that is a multiple of 8, as both ends are.
  bool ContainsAligned(uintptr_t address) const { return address - lo < hi - lo; }
};

// The marker for a return address of zero. Who makes a stack of its own puts a zero where
// the return address of the first frame is, so the walk is complete there. On threads' own
// stacks CFI of libc, which makes them, tells where the stack ends: a zero there means that
// the walk went astray.
constexpr format::StackMarker MarkerOfNoReturn(bool on_primary_stack) {
  return on_primary_stack ? format::StackMarker::kNoUnwindInfo : format::StackMarker::kContextEnd;
}

class StackBounds {
 public:
  constexpr StackBounds() = default;

  // The window of a walk that begins at `sp`, on the stack the thread runs on.
  [[gnu::always_inline]] StackWindow Enter(uintptr_t sp) {
    if (sp - lo_ < hi_ - lo_) return {lo_, hi_};
    return EnterSlow(sp);
  }

  // Moves the window so that it contains the word at `address`; false: it cannot
  // be read.
  bool Move(uintptr_t address, StackWindow* window);

  void Reset();

  uintptr_t primary_lo() const { return lo_; }
  uintptr_t primary_hi() const { return hi_; }
  // False: `address` is not of the thread's own stack, nor will it be found to
  // be. Looks at no memory.
  bool MayBePrimary(uintptr_t address) const;
  // Is that the window of the thread's own stack?
  bool IsPrimary(const StackWindow& window) const { return window.hi == hi_; }

 private:
  StackWindow EnterSlow(uintptr_t sp);
  void FindPrimary();
  bool ExtendPrimary(uintptr_t page);
  bool ExtendFar(uintptr_t page);
  bool MayExtendFar(uintptr_t page) const;

  uintptr_t lo_ = 0;  // equal to hi_: not known yet
  uintptr_t hi_ = 0;
  // Below it nothing is of the primary stack: the begin of a stack that pthread_create made, behind
  // its guard, or a hole that was met. 0: not known.
  uintptr_t floor_ = 0;
  bool floor_is_hole_ = false;
  bool is_main_ = false;  // the stack is the one that the kernel made
  // How many attempts to follow a frame larger than kMaxGrowthBytes met memory that cannot be read.
  uint32_t far_attempts_ = 0;
  uint32_t looked_ = 0;          // FindPrimary() has been done
  uint32_t wasted_probes_ = 0;   // of attempts to extend that met a hole
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_STACK_BOUNDS_H_
