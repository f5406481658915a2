#include "preload/first_process.h"

#include <errno.h>
#include <sys/ioctl.h>

#include <string_view>

#include "preload/proc_file.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

// Starts the services of other users, and is nobody's to trace: not so in a container, where it may
// be the program itself.
constexpr int kInit = 1;

// The kernel's number of that is fixed (PROC_PID_INIT_INO).
bool IsFirstPidNamespace() {
  Text<64> name;
  ReadProcLink("/proc/self/ns/pid", name);
  return name.view() == "pid:[4026531836]";
}

bool IsTerminal(int fd) {
  char settings[256];  // larger than any struct termios
  return !sys::Failed(sys::Call(SYS_ioctl, fd, TCGETS, reinterpret_cast<long>(settings)));
}

}  // namespace

Parent LookAtParent() {
  const int parent = sys::Getppid();
  Text<32> path;
  path << "/proc/" << parent << "/maps";
  const ProcFile maps(path.c_str(), 4 << 20);
  if (maps.error() == -EACCES || maps.error() == -EPERM) {
    return parent == kInit && IsFirstPidNamespace() ? Parent::kNotTraced : Parent::kHidden;
  }
  return maps.text().find("/libmemtrace.so") != std::string_view::npos ? Parent::kTraced
                                                                       : Parent::kNotTraced;
}

bool MaySay() {
  const Parent parent = LookAtParent();
  return parent == Parent::kNotTraced || (parent == Parent::kHidden && IsTerminal(2));
}

}  // namespace memtrace
