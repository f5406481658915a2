// Functions that make a process. A fork child is known by its first event, so these only
// serve what that cannot: a fork in the midst of the tracer, a fork child whose first event is
// another thread's than the one that lives on in it, and the end of a process that libc does not
// tell of.
//
// vfork is not here: what it calls would return twice on one stack.

#include <sys/types.h>
#include <unistd.h>

#include "preload/exported.h"
#include "preload/fork_child.h"
#include "preload/interrupted_fork.h"
#include "preload/lifecycle.h"
#include "preload/next_functions.h"
#include "preload/process_end.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/thread_state.h"

namespace {

// A fork child without an event so far has no trace yet; begun now, its own children can
// name it as their parent.
void BeginTrace() {
  if (memtrace::IsInside(memtrace::t_slot.mode)) {
    memtrace::AwaitStart();  // by another thread: a handler does not interrupt the one that begins
    return;
  }
  const memtrace::Section section;
}

pid_t Call(pid_t (*real)()) {
  BeginTrace();
  const pid_t pid = real();
  if (pid == 0) memtrace::CloseParentsFiles();
  if (pid == 0 && memtrace::IsInside(memtrace::t_slot.mode)) memtrace::ForkedInside();
  if (pid == 0) memtrace::ForgetParentsState();
  return pid;
}

}  // namespace

EXPORTED pid_t fork() { return Call(memtrace::g_real.fork); }

EXPORTED pid_t _Fork() { return Call(memtrace::g_real.underscore_fork); }

// The caller ends within libc, by an _exit() that nobody can interpose. If no process can
// be made, it goes on, and its end is taken for what it was, premature.
EXPORTED int daemon(int no_chdir, int no_close) {
  memtrace::EndAtOnce(0, MEMTRACE_KEPT_REGISTERS_ON_STACK(), /*now=*/false);
  return memtrace::Next().daemon(no_chdir, no_close);
}
