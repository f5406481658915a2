#include "preload/process_identity.h"

#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

uint64_t Number(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = 0; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    number = number * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  return number;
}

uint64_t StartTicksAt(const char* path) {
  char text[1024];
  const long bytes = sys::ReadFile(path, text, sizeof(text));
  return bytes > 0 ? StartTicksOfStat({text, static_cast<size_t>(bytes)}) : 0;
}

}  // namespace

uint64_t StartTicksOfStat(std::string_view stat) {
  // The second field is the name in brackets, which may hold anything.
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22; ++field) {
    if (at == std::string_view::npos) return 0;
    at = stat.find(' ', at + 1);
  }
  return at == std::string_view::npos ? 0 : Number(From(stat, at + 1));
}

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
  return bracket == std::string_view::npos ? 0 : Number(From(text, bracket + 1));
}

}  // namespace memtrace
