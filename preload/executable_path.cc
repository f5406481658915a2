#include "preload/executable_path.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <string_view>

#include "preload/arch/arch.h"
#include "preload/mapping_query.h"
#include "preload/proc_file.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr const char kExecutable[] = "/proc/self/exe";

// Those names by which the program may have been called that lead to its own file.
class NamesOfExecutable {
 public:
  explicit NamesOfExecutable(Text<4096>* path)
      : path_(*path), known_(!sys::Failed(sys::Stat(kExecutable, &executable_))) {}

  // Whether `name` leads to it; then the path is where it stands, without links.
  bool Try(const char* name) {
    if (!known_) return false;
    const long fd = sys::Open(name, O_PATH);
    if (sys::Failed(fd)) return false;
    struct stat found;
    if (!sys::Failed(sys::Fstat(fd, &found)) && found.st_dev == executable_.st_dev &&
        found.st_ino == executable_.st_ino) {
      Text<64> link;
      link << "/proc/self/fd/" << static_cast<uint64_t>(fd);
      ReadProcLink(link.c_str(), path_);
    }
    sys::Close(fd);
    return path_.size() > 1;
  }

  // The same for a name that was looked for in the directories of `search_path`.
  void TryIn(std::string_view search_path, std::string_view name) {
    for (bool more = true; more;) {
      const size_t end = search_path.find(':');
      Text<4096> file;
      file << First(search_path, end) << (end == 0 ? "./" : "/") << name;
      if (!file.cut() && Try(file.c_str())) return;
      more = end != std::string_view::npos;
      if (more) search_path.remove_prefix(end + 1);
    }
  }

 private:
  Text<4096>& path_;
  struct stat executable_ = {};
  const bool known_;
};

// What the environment said of PATH when the program began; otherwise libc's own.
std::string_view SearchPath(std::string_view environment) {
  constexpr std::string_view kName = "PATH=";
  while (!environment.empty()) {
    const std::string_view entry = First(environment, environment.find('\0'));
    if (entry.starts_with(kName)) return From(entry, kName.size());
    environment = From(environment, entry.size() + 1);
  }
  return "/bin:/usr/bin";
}

// By the names that it was called by. What it needs of the stack, few processes have to have.
[[gnu::noinline]] void FindByName(Text<4096>& path) {
  NamesOfExecutable names(&path);
  const auto* const by_kernel = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (by_kernel != nullptr && names.Try(by_kernel)) return;
  const ProcFile command("/proc/self/cmdline", 64 << 10);
  Text<4096> name;
  name << First(command.text(), command.text().find('\0'));
  if (name.cut() || names.Try(name.c_str()) || name.view().find('/') != std::string_view::npos) {
    return;
  }
  const ProcFile environment("/proc/self/environ", 4 << 20);
  names.TryIn(SearchPath(environment.text()), name.view());
}

// By where its program headers are, which ld.so has found where it was called by its own name.
[[gnu::noinline]] void FindByMapping(Text<4096>& path) {
  Text<8192> mapped;
  const uintptr_t headers = getauxval(AT_PHDR);
  if (headers == 0 || !NameOfMapping(headers & ~(arch::kPageBytes - 1), mapped)) return;
  path.Clear();
  path << mapped.view();
}

}  // namespace

void ReadExecutablePath(Text<4096>& path) {
  ReadProcLink(kExecutable, path);
  if (getauxval(AT_BASE) == 0) {
    FindByMapping(path);  // the link is of the loader
  } else if (path.view() == "/") {
    FindByName(path);
  }
}

}  // namespace memtrace
