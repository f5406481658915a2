// WithDescriptor: a system call that needs a descriptor, also when the program has used up all of
// them.
//
// A program that leaks descriptors, or a server at its limit (RLIMIT_NOFILE), lives on; its trace
// must, too. No descriptor is kept, and none may be taken from the program. But a process that
// shares this one's memory may have limits and a table of its own: CLONE_VM without CLONE_FILES.
// There the limit is raised as far as it may be, and number 0 closed. It does what has to be done,
// also a mapping, and ends; the calling thread stands meanwhile (CLONE_VFORK). So it costs a copy
// of the table, tens of microseconds, and only where a call said EMFILE.
//
// The program notices nothing: the copy has no signal for its end and blocks all others, nobody
// who traces the program is told of it, and locks belong to the program's table.
//
// Async-signal-safe; any thread.

#ifndef MEMTRACE_PRELOAD_DESCRIPTOR_TABLE_H_
#define MEMTRACE_PRELOAD_DESCRIPTOR_TABLE_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "preload/recording_switch.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

// Calls `function` where a descriptor is to be had. False: no such process can be made, and it was
// not called. /proc/self is the other process there, which has the memory but not the threads: see
// OwnProcDirectory().
bool CallWithSpareDescriptors(void (*function)(void*), void* argument);

// `function()` there, which returns a result or -errno. False: as above.
template <typename Function>
bool WithSpareDescriptors(Function function, long* result) {
  struct Call {
    Function* function;
    long* result;
  } call = {&function, result};
  return CallWithSpareDescriptors(
      [](void* argument) {
        auto* const call = static_cast<Call*>(argument);
        *call->result = (*call->function)();
      },
      &call);
}

// The same here, and once more with spare descriptors when it says -EMFILE.
template <typename Function>
long WithDescriptor(Function function) {
  long result = function();
  if (result == -EMFILE) WithSpareDescriptors(function, &result);
  return result;
}

// The same, for what is written. Where all numbers are low (sys::MoveUp) another thread may close
// the one that is ours, and open a file of the program's that gets it, before the write. So there
// it is done with a table of our own, where that can be had.
template <typename Function>
long WithOwnDescriptor(Function function) {
  const bool others_choose = g_switch.sharing.load(std::memory_order_relaxed) != 0 &&
                             sys::Limit(RLIMIT_NOFILE) <= static_cast<uint64_t>(sys::kMovedUpFrom);
  long result = 0;
  return others_choose && WithSpareDescriptors(function, &result) ? result
                                                                  : WithDescriptor(function);
}

// sys::ReadFile() so.
long ReadFile(const char* path, char* buffer, size_t capacity);

// In a fork child, before it opens any itself: closes its copies of what other threads of its
// parent had open just then by sys::OpenBriefly().
void CloseInheritedDescriptors();

// "/proc/" and this process's number there, for files that are not of the memory alone. Where it
// cannot be told, /proc/self.
Text<32> OwnProcDirectory();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_DESCRIPTOR_TABLE_H_
