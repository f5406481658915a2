#include "report/base/scratch_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace memtrace::report {

ScratchDirectory::ScratchDirectory(absl::string_view name) {
  const char* const named = getenv("TMPDIR");
  const std::string place = named != nullptr && *named != '\0' ? named : "/tmp";
  std::string path = absl::StrCat(place, "/", name, ".XXXXXX");
  if (mkdtemp(path.data()) != nullptr) {
    path_ = path;
  } else {
    error_ = absl::StrCat("cannot make a directory in ", place, ": ", strerror(errno),
                          "; set TMPDIR to a directory with room");
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace memtrace::report
