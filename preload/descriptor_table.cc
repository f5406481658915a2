#include "preload/descriptor_table.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {

bool CallWithSpareDescriptors(void (*function)(void*), void* argument) {
  constexpr size_t kStackBytes = 64 << 10;
  const OtherCalls calls;
  if (!calls || g_process.must_not_clone.load(std::memory_order_relaxed)) return false;
  // A signal that is sent to the program's process group reaches the other process as well, which
  // has the program's handlers.
  const SignalsBlocked no_handler;
  void* const stack = OwnMap(kStackBytes, /*touch=*/false);
  if (stack == nullptr) return false;
  struct Job {
    void (*function)(void*);
    void* argument;
  } job = {function, argument};
  const long other = arch::CloneAndCall(
      CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, static_cast<char*>(stack) + kStackBytes,
      [](void* data) {
        // Limits are its own as well. Where there is nothing to raise, the table is full: so there
        // is a descriptor with the number 0.
        uint64_t limits[2];
        if (!sys::Failed(
                sys::Call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(limits)))) {
          limits[0] = limits[1];
          sys::Call(SYS_prlimit64, 0, RLIMIT_NOFILE, reinterpret_cast<long>(limits), 0);
        }
        sys::Close(0);
        const Job& job = *static_cast<const Job*>(data);
        job.function(job.argument);
      },
      &job);
  if (!sys::Failed(other)) {
    while (sys::Call(SYS_wait4, other, 0, __WALL, 0) == -EINTR) {
    }
  }
  OwnUnmap(stack, kStackBytes);
  return !sys::Failed(other);
}

long ReadFile(const char* path, char* buffer, size_t capacity) {
  return WithDescriptor([&] { return sys::ReadFile(path, buffer, capacity); });
}

void CloseInheritedDescriptors() {
  sys::g_brief_numbers.ForEachInherited(sys::kMovedUpFrom, [](long fd) {
    // Other files must not be asked for anything that their file system would have to answer.
    const long flags = sys::Call(SYS_fcntl, fd, F_GETFL);
    if (sys::Failed(flags)) return false;
    constexpr int kAsOpened = O_ACCMODE | O_NOFOLLOW | O_NONBLOCK | O_DSYNC;
    struct statfs info;
    if ((flags & kAsOpened) == sys::kBriefFlags &&
        !sys::Failed(sys::Call(SYS_fstatfs, fd, reinterpret_cast<long>(&info))) &&
        (info.f_type == PROC_SUPER_MAGIC || info.f_type == SYSFS_MAGIC)) {
      sys::Close(fd);
    }
    return true;
  });
}

Text<32> OwnProcDirectory() {
  char number[16];
  const long bytes = sys::Readlink("/proc/self", number, sizeof(number));
  Text<32> path;
  path << "/proc/";
  if (bytes > 0 && static_cast<size_t>(bytes) < sizeof(number)) {
    path << std::string_view(number, static_cast<size_t>(bytes));
  } else {
    path << "self";
  }
  return path;
}

}  // namespace memtrace
