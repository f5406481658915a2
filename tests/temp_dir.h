// TempDir: a directory of a test's own, removed with everything in it.

#ifndef MEMTRACE_TESTS_TEMP_DIR_H_
#define MEMTRACE_TESTS_TEMP_DIR_H_

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace memtrace {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "memtrace-test.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::abort();
    }
    path_ = std::filesystem::canonical(name).string();
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace memtrace

#endif  // MEMTRACE_TESTS_TEMP_DIR_H_
