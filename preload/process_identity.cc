#include "preload/process_identity.h"

#include <string_view>

#include "preload/proc_text.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

// Field 22: clock ticks since boot.
uint64_t StartTicksAt(const char* path) {
  char text[1024];
  const long bytes = sys::ReadFile(path, text, sizeof(text));
  return bytes > 0 ? StatNumber({text, static_cast<size_t>(bytes)}, 22) : 0;
}

}  // namespace

uint64_t StartTicksOfProcess(int pid) {
  if (pid <= 0) return 0;
  Text<32> path;
  path << "/proc/" << pid << "/stat";
  return StartTicksAt(path.c_str());
}

uint64_t StartTicksOfSelf() { return StartTicksAt("/proc/self/stat"); }

uint64_t PidNamespace() {
  char link[64];  // "pid:[4026531836]"
  const long bytes = sys::Readlink("/proc/self/ns/pid", link, sizeof(link));
  if (bytes <= 0) return 0;
  const std::string_view text(link, static_cast<size_t>(bytes));
  const size_t bracket = text.find('[');
  if (bracket == std::string_view::npos) return 0;
  std::string_view number = From(text, bracket + 1);
  return TakeNumber(number, 10);
}

}  // namespace memtrace
