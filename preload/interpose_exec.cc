// The exec family: this process's program is about to be replaced. The last
// words are written before; if the exec fails, the program and its trace go on,
// and a record says that the end was premature.
//
// A vfork child shares its parent's memory: it must return to the parent's stack
// only by exec or _exit, and NoteEnd does nothing in it.

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "preload/exported.h"
#include "preload/leak_scan/exec_under_way.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/leak_scan/scan_copy.h"
#include "preload/next_functions.h"
#include "preload/trace_end.h"

namespace {

class LastWords {
 public:
  LastWords() {
    memtrace::FinishScan();
    end_ticks_ = memtrace::NoteEnd(memtrace::format::EndReason::kExec, 0);
  }
  ~LastWords() {
    const int error = errno;  // the exec's
    if (end_ticks_ != 0) memtrace::NoteExecFailed(end_ticks_);
    errno = error;
  }

 private:
  uint64_t end_ticks_;
};

struct OwnFiles {
  OwnFiles() { memtrace::WaitForSharedFiles(); }
};

// Lives until the exec has failed. What takes time comes first: a handler that jumps out of
// that has left nothing.
class Replacing {
  const LastWords last_words_;
  const memtrace::ExecUnderWay exec_;
  const OwnFiles files_;
};

// The arguments of execl and its kin, up to and including the null pointer.
size_t CountArguments(va_list list) {
  size_t count = 1;
  while (va_arg(list, const char*) != nullptr) ++count;
  return count;
}

}  // namespace

EXPORTED int execve(const char* path, char* const argv[], char* const envp[]) {
  const Replacing replacing;
  return memtrace::Next().execve(path, argv, envp);
}

EXPORTED int execv(const char* path, char* const argv[]) {
  const Replacing replacing;
  return memtrace::Next().execv(path, argv);
}

EXPORTED int execvp(const char* file, char* const argv[]) {
  const Replacing replacing;
  return memtrace::Next().execvp(file, argv);
}

EXPORTED int execvpe(const char* file, char* const argv[], char* const envp[]) {
  const Replacing replacing;
  return memtrace::Next().execvpe(file, argv, envp);
}

EXPORTED int fexecve(int fd, char* const argv[], char* const envp[]) {
  const Replacing replacing;
  return memtrace::Next().fexecve(fd, argv, envp);
}

EXPORTED int execveat(int fd, const char* path, char* const argv[], char* const envp[],
                      int flags) {
  const Replacing replacing;
  return memtrace::Next().execveat(
      fd, path, argv, envp, flags);
}

// The list forms: the arguments become an array on this stack, as in libc.
#define COLLECT_ARGUMENTS(argv, first, list)                          \
  va_list list;                                                       \
  va_start(list, first);                                              \
  const size_t argv##_count = CountArguments(list);                   \
  va_end(list);                                                       \
  const char* argv[argv##_count + 1];                                 \
  va_start(list, first);                                              \
  argv[0] = first;                                                    \
  for (size_t i = 1; i <= argv##_count; ++i) argv[i] = va_arg(list, const char*)

EXPORTED int execl(const char* path, const char* first, ...) {
  COLLECT_ARGUMENTS(argv, first, list);
  va_end(list);
  const Replacing replacing;
  return memtrace::Next().execv(path, const_cast<char* const*>(argv));
}

EXPORTED int execlp(const char* file, const char* first, ...) {
  COLLECT_ARGUMENTS(argv, first, list);
  va_end(list);
  const Replacing replacing;
  return memtrace::Next().execvp(file, const_cast<char* const*>(argv));
}

EXPORTED int execle(const char* path, const char* first, ...) {
  COLLECT_ARGUMENTS(argv, first, list);
  char* const* environment = va_arg(list, char* const*);
  va_end(list);
  const Replacing replacing;
  return memtrace::Next().execve(
      path, const_cast<char* const*>(argv), environment);
}
