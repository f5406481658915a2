#include "report/base/scratch_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace memtrace::report {

ScratchDirectory::ScratchDirectory(absl::string_view name) {
  const char* base = getenv("TMPDIR");
  std::string path =
      absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/", name, ".XXXXXX");
  if (mkdtemp(path.data()) != nullptr) {
    path_ = path;
  } else {
    error_ = absl::StrCat("cannot create ", path, ": ", strerror(errno),
                          "; TMPDIR names another place");
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace memtrace::report
