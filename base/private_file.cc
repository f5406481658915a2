#include "base/private_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/file_stamp.h"
#include "base/whole_io.h"

namespace memtrace::base {
namespace {

constexpr std::string_view kBeingWritten = ".memtrace-";
constexpr std::string_view kSixLetters = "XXXXXX";  // behind it, as mkstemp() wants them
constexpr time_t kNobodyWritesSoLong = 3600;  // seconds

int OpenToRead(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

}  // namespace

std::string UserCacheDirectory() {
  // A relative path is void, says the XDG Base Directory Specification.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/memtrace";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/memtrace";
  return "";
}

bool MakePrivateDirectory(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (at == std::string::npos) return true;
  }
}

bool ReadPrivateFile(const std::string& path, uint64_t most_bytes, time_t touch_after,
                     std::string* bytes) {
  const int fd = OpenToRead(path);
  if (fd < 0) return false;
  struct stat st;
  const bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                    static_cast<uint64_t>(st.st_size) <= most_bytes;
  if (ours) bytes->resize(static_cast<size_t>(st.st_size));
  const bool read = ours && ReadAllAt(fd, 0, bytes->data(), bytes->size());
  if (read && touch_after != 0 && st.st_mtim.tv_sec + touch_after < time(nullptr)) {
    futimens(fd, nullptr);
  }
  close(fd);
  return read;
}

bool IsOfKind(const std::string& path, const PrivateKind& kind) {
  const std::string_view common = kind.magic.substr(0, 6);
  const int fd = OpenToRead(path);
  if (fd < 0) return false;
  char begin[6];
  struct stat st;
  const bool is_of_kind = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                          ReadAllAt(fd, 0, begin, sizeof(begin)) &&
                          std::string_view(begin, sizeof(begin)) == common;
  close(fd);
  return is_of_kind;
}

bool WritePrivateFile(const std::string& path, std::string_view bytes) {
  std::string temporary = path.substr(0, path.rfind('/') + 1);
  temporary += kBeingWritten;
  temporary += kSixLetters;
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = WriteAll(fd, bytes);
  // Some file systems tell only now that there was no room.
  if (close(fd) == 0 && written && rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

void TrimPrivateDirectory(const std::string& directory, const PrivateKind& kind,
                          uint64_t most_bytes, const std::string& kept) {
  struct Old {
    int64_t used_ns;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Old> all;
  uint64_t total = 0;
  DIR* const open = opendir(directory.c_str());
  if (open == nullptr) return;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  while (const struct dirent* item = readdir(open)) {
    const std::string_view name = item->d_name;
    const std::string path = directory + "/" + item->d_name;
    const bool being_written = name.starts_with(kBeingWritten) &&
                               name.size() == kBeingWritten.size() + kSixLetters.size();
    struct stat st;
    if ((!being_written && !name.ends_with(kind.suffix)) || lstat(path.c_str(), &st) != 0 ||
        !S_ISREG(st.st_mode)) {
      continue;
    }
    if (being_written) {
      if (st.st_mtim.tv_sec + kNobodyWritesSoLong < now.tv_sec) unlink(path.c_str());
      continue;
    }
    if (!IsOfKind(path, kind)) continue;
    const auto bytes = static_cast<uint64_t>(st.st_size);
    total += bytes;
    if (path != kept) {
      all.push_back({NsOf(st.st_mtim), bytes, path});
    }
  }
  closedir(open);
  if (total <= most_bytes) return;
  std::sort(all.begin(), all.end(),
            [](const Old& a, const Old& b) { return a.used_ns < b.used_ns; });
  // Some more than needed, so that not every file that follows drives one out.
  for (const Old& old : all) {
    if (total <= most_bytes / 4 * 3) break;
    if (unlink(old.path.c_str()) == 0) total -= old.bytes;
  }
}

}  // namespace memtrace::base
