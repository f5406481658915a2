#include "report/run/library_finder.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/base/path.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {
namespace {

constexpr char kLibraryName[] = "libmemtrace.so";

// "x86_64-linux-gnu" and so on, where Debian keeps libraries.
#if defined(__x86_64__)
constexpr char kMultiarch[] = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr char kMultiarch[] = "aarch64-linux-gnu";
#elif defined(__riscv)
constexpr char kMultiarch[] = "riscv64-linux-gnu";
#else
constexpr char kMultiarch[] = "lib";
#endif

std::string OwnDirectory() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  return n > 0 ? DirectoryOf(absl::string_view(path, static_cast<size_t>(n))) : "";
}

// Absolute, with `directory/..` resolved; empty when there is no such file.
std::string Absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real != nullptr ? real.get() : "";
}

}  // namespace

absl::StatusOr<PreloadLibrary> FindPreloadLibrary(const std::string& given) {
  PreloadLibrary library;
  if (!given.empty()) {
    library.path = Absolute(given);
    if (library.path.empty()) {
      return absl::NotFoundError(absl::StrCat("cannot open ", given, ": ", strerror(errno)));
    }
  } else {
    const std::string bin = OwnDirectory();
    for (const std::string& directory : std::vector<std::string>{
             absl::StrCat(bin, "/../lib"), absl::StrCat(bin, "/../lib/", kMultiarch),
             absl::StrCat(bin, "/../lib64"), absl::StrCat(bin, "/../lib/memtrace"), bin}) {
      library.path = Absolute(absl::StrCat(directory, "/", kLibraryName));
      if (!library.path.empty()) break;
    }
    if (library.path.empty()) {
      return absl::NotFoundError(absl::StrCat("cannot find ", kLibraryName, " in ", bin,
                                              "/../lib; name it with --library"));
    }
  }
  // ld.so splits LD_PRELOAD at spaces and colons, and expands $ORIGIN and the like.
  if (library.path.find_first_of(" :$") != std::string::npos) {
    return absl::FailedPreconditionError(
        absl::StrCat("the loader cannot preload '", library.path, "': a space, ':' or '$' in the "
                     "path; copy it elsewhere and name the copy with --library"));
  }
  const UniqueFd fd(open(library.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) {
    return absl::NotFoundError(absl::StrCat("cannot open ", library.path, ": ", strerror(errno)));
  }
  absl::StatusOr<ElfFacts> facts = ReadElfFacts(fd.get());
  if (!facts.ok() || (facts->readable_here() && facts->type != ET_DYN)) {
    return absl::FailedPreconditionError(
        absl::StrCat(library.path, " is no shared library; name libmemtrace.so with --library"));
  }
  library.facts = *std::move(facts);
  return library;
}

}  // namespace memtrace::report
