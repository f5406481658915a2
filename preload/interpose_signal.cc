// What a thread says of its alternate signal stack: a scan stops threads by a signal and has to
// know whether it may take it there (alternate_stacks.h).

#include <errno.h>
#include <signal.h>

#include "preload/alternate_stacks.h"
#include "preload/exported.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/sys.h"

// The system call, which is all that libc's does.
EXPORTED int sigaltstack(const stack_t* wanted, stack_t* before) noexcept {
  const long result = memtrace::sys::Call(SYS_sigaltstack, reinterpret_cast<long>(wanted),
                                          reinterpret_cast<long>(before));
  if (memtrace::sys::Failed(result)) {
    errno = static_cast<int>(-result);
    return -1;
  }
  // The kernel is asked for the stack that is set now. `wanted` is not read: `before` may be the
  // same struct, and the call has written the stack that was set before into it.
  stack_t now;
  if (wanted != nullptr &&
      !memtrace::sys::Failed(
          memtrace::sys::Call(SYS_sigaltstack, 0, reinterpret_cast<long>(&now))) &&
      (now.ss_flags & SS_DISABLE) == 0 &&
      memtrace::NoteAlternateStack(reinterpret_cast<uintptr_t>(now.ss_sp), now.ss_size)) {
    memtrace::PrepareLeakSignal();
  }
  return 0;
}
