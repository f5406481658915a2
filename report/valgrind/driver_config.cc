#include "report/valgrind/driver_config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "report/base/unique_fd.h"

namespace memtrace::report::valgrind {
namespace {

constexpr size_t kMostBytes = 1 << 20;

// Empty when there is none that may be read. `is_ours`: the user's own, and nobody
// else may write to it.
absl::StatusOr<std::string> TextOf(const std::string& path, bool is_ours) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.ok()) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return std::string();
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  }
  std::string text;
  struct stat status;
  if (fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) &&
      (!is_ours || (status.st_uid == geteuid() && (status.st_mode & S_IWOTH) == 0))) {
    char buffer[4096];
    ssize_t bytes;
    while (text.size() < kMostBytes && (bytes = read(fd.get(), buffer, sizeof(buffer))) > 0) {
      text.append(buffer, static_cast<size_t>(bytes));
    }
  }
  return text;
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

}  // namespace

std::vector<std::string> WordsOfOptions(absl::string_view text) {
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size();) {
    if (absl::ascii_isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    if (text[i] == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && !absl::ascii_isspace(static_cast<unsigned char>(text[i]))) ++i;
    words.emplace_back(text.substr(begin, i - begin));
  }
  return words;
}

absl::StatusOr<std::vector<ConfiguredOptions>> ReadConfiguredOptions() {
  std::vector<ConfiguredOptions> all;
  const auto add = [&](std::string place, absl::string_view text) {
    std::vector<std::string> words = WordsOfOptions(text);
    if (!words.empty()) all.push_back({std::move(place), std::move(words)});
  };
  const std::string here = ".valgrindrc";
  const char* home = std::getenv("HOME");
  const std::string of_user = home != nullptr && *home != '\0' ? absl::StrCat(home, "/", here) : "";
  if (!of_user.empty()) {
    const auto text = TextOf(of_user, /*is_ours=*/false);
    if (!text.ok()) return text.status();
    add(of_user, *text);
  }
  if (const char* options = std::getenv("VALGRIND_OPTS"); options != nullptr) {
    add("VALGRIND_OPTS", options);
  }
  if (of_user.empty() || !IsSameFile(of_user, here)) {
    const auto text = TextOf(here, /*is_ours=*/true);
    if (!text.ok()) return text.status();
    add("./.valgrindrc", *text);
  }
  return all;
}

}  // namespace memtrace::report::valgrind
