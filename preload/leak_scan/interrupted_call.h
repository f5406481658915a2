// InterruptedCall: the call of the kernel that our signal ended, made once more.
//
// Many calls fail with EINTR when a handler has run, with SA_RESTART too: poll, epoll_wait,
// nanosleep, pause. Others return what they have done so far. Programs that handle no signals
// need not expect it. What the call was is known from /proc, where the thread was seen in it
// before it was sent the signal (by `memtrace leaks`, if it sent that: format/leak_signal.h), or
// from the instruction in front. What was done in part, or has a timeout that the kernel does not
// shorten, is gone on with in the handler (partial_transfer.h, timed_wait.h). Where that cannot
// be, the timeout begins anew, and a sleep that is interrupted again and again takes thrice as
// long at most. Where a signal of the program's is pending as well, the result is right and
// stays.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_INTERRUPTED_CALL_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_INTERRUPTED_CALL_H_

#include <cstdint>
#include <string_view>

#include "format/leak_signal.h"

namespace memtrace {

// The call that a thread was seen in.
struct SeenCall {
  long number = -1;  // -1: in none
  format::CallPlace place;

  // Reads the text of /proc/self/task/TID/syscall: "232 0x5 ... 0x7ffe0010 0x7f000010",
  // the number, the arguments, the stack pointer and the address behind the call. "-1
  // ..." in no call, "running".
  static SeenCall Parse(std::string_view text);
};

// Where a thread is that a signal interrupted, by the ucontext of its handler. `pc`: behind the
// call.
format::CallPlace PlaceOfCall(const void* context, uintptr_t pc);

// A signal of the mask `unblocked` is pending for the calling thread, or for its process, and is
// not ignored: while it is blocked, the kernel keeps it even so.
bool IsSignalPending(uint64_t unblocked);

// At the end of a handler, with its ucontext.
void MakeInterruptedCallAgain(void* context, const SeenCall& seen);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_INTERRUPTED_CALL_H_
