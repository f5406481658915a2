// What a thread says of its alternate signal stack: a scan stops threads by a signal and has to
// know whether they share one (alternate_stacks.h).

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
  // The kernel has read it.
  if (wanted != nullptr && (wanted->ss_flags & SS_DISABLE) == 0 &&
      memtrace::NoteAlternateStack(reinterpret_cast<uintptr_t>(wanted->ss_sp))) {
    memtrace::PrepareLeakSignal();
  }
  return 0;
}
