#include "preload/trace_name.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "format/file_name.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// Numbers that are tried one after another, before it is looked how many there are.
constexpr uint64_t kTriedInTurn = 8;
constexpr uint64_t kMostNumbers = 1'000'000'000;

}  // namespace

void TraceName::Set(const char* pattern, const Values& values) {
  path_ = Path();
  if (pattern[0] != '/') path_ << values.working_directory << "/";
  Append(pattern, values);
}

void TraceName::Append(const char* pattern, const Values& values) {
  for (const char* p = pattern; *p != 0; ++p) {
    if (*p != '%') {
      path_ << std::string_view(p, 1);
    } else if (p[1] == 'e') {
      path_ << format::NameForAFile(values.program), ++p;
    } else if (p[1] == 'p') {
      path_ << values.pid, ++p;
    } else if (p[1] == 't') {
      path_ << values.start_ns, ++p;
    } else if (p[1] == '%') {
      path_ << "%", ++p;
    } else {
      path_ << "%";
    }
  }
}

long TraceName::CreateFile(const Values& values) {
  long fd = Create();
  if (fd != -EEXIST && fd != -EISDIR) return fd;
  const mode_t mode = ModeBehindLinks();
  if (S_ISDIR(mode)) {
    if (!path_.view().ends_with('/')) path_ << "/";
    Append(kDefaultTraceName, values);
    fd = Create();
  } else if (mode != 0 && !S_ISREG(mode)) {
    return -EMEDIUMTYPE;  // who names /dev/null wants no /dev/null.1
  }
  return fd == -EEXIST ? CreateNumbered() : fd;
}

long TraceName::Create() const {
  if (path_.cut()) return -ENAMETOOLONG;
  return sys::MoveUp(
      sys::Open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY, 0600));
}

mode_t TraceName::ModeBehindLinks() const {
  struct stat info;
  return sys::Failed(sys::Stat(path_.c_str(), &info)) ? 0 : info.st_mode;
}

bool TraceName::Exists() {
  struct stat info;
  return !sys::Failed(sys::Stat(path_.c_str(), &info, AT_SYMLINK_NOFOLLOW));
}

// A build has thousands of processes: each of them finds its number in a few dozen calls, not in as
// many as there were processes before it.
long TraceName::CreateNumbered() {
  const Path wanted = path_;
  uint64_t number = 0;
  long fd = -EEXIST;
  while (fd == -EEXIST && number < kMostNumbers) {
    if (number > 0 && number % kTriedInTurn == 0) number = LastNumberInUse(wanted.view(), number);
    Number(wanted.view(), ++number);
    fd = Create();
  }
  return fd;
}

// A number in use whose next one is not: looked for twice as far each time, then halfway between.
uint64_t TraceName::LastNumberInUse(std::string_view wanted, uint64_t in_use) {
  uint64_t unused = in_use;
  do {
    in_use = unused;
    Number(wanted, unused = 2 * in_use);
  } while (unused < kMostNumbers && Exists());
  while (unused - in_use > 1) {
    const uint64_t middle = in_use + (unused - in_use) / 2;
    Number(wanted, middle);
    (Exists() ? in_use : unused) = middle;
  }
  return in_use;
}

void TraceName::Number(std::string_view wanted, uint64_t number) {
  size_t dot = wanted.rfind('.');
  if (dot == std::string_view::npos || wanted.find('/', dot) != std::string_view::npos) {
    dot = wanted.size();
  }
  path_.Clear();
  path_ << First(wanted, dot) << "." << number << From(wanted, dot);
}

}  // namespace memtrace
