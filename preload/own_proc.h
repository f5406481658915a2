// ReadOwnProc: what /proc tells of this process.
//
// /proc/self is the first thread's. When that has ended it tells nothing, and /proc/thread-self,
// which is the calling one's, tells all the same. But not everywhere may that be read: AppArmor's
// abstractions/base lets programs read /proc/PID/maps and no thread's, and emulators know of
// /proc/self alone. So it comes second.

#ifndef MEMTRACE_PRELOAD_OWN_PROC_H_
#define MEMTRACE_PRELOAD_OWN_PROC_H_

#include <cstddef>
#include <string_view>

#include "preload/text.h"

namespace memtrace {

// `read(path)` of the file `name` there: what it says where that is more than 0, as the number of
// bytes is that were read. 0 and -errno: nothing was told.
template <typename Read>
long ReadOwnProc(std::string_view name, Read read) {
  long result = 0;
  for (const std::string_view directory : {"/proc/self/", "/proc/thread-self/"}) {
    Text<48> path;
    path << directory << name;
    result = read(path.c_str());
    if (result > 0) break;
  }
  return result;
}

// Whose numbers /proc has. A process of a pid namespace of its own may see that of another one:
// after unshare --pid without a mount, or where a child mounts its own over its parent's.
enum class ProcNumbers {
  kOurs,
  kOfOuterNamespace,  // where this process has another number
  kOfOtherNamespace,  // where it has none, and /proc/self leads nowhere
  kNotThere
};
ProcNumbers WhoseNumbersInProc();

// The status of a thread that lives: for one that has ended it says nothing of memory. Empty:
// nothing was told.
std::string_view ReadOwnStatus(char* buffer, size_t capacity);

// Opens the page map of this process for reading. -errno: there is none.
long OpenOwnPagemap();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_OWN_PROC_H_
