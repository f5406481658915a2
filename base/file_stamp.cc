#include "base/file_stamp.h"

namespace memtrace::base {

int64_t NsOf(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileStamp FileStamp::Of(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) == 0) return Of(path, st);
  FileStamp stamp;
  stamp.path = path;
  return stamp;
}

FileStamp FileStamp::Of(const std::string& path, const struct stat& st) {
  return {path, true, st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size), NsOf(st.st_mtim),
          NsOf(st.st_ctim)};
}

}  // namespace memtrace::base
