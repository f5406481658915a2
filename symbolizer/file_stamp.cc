#include "symbolizer/file_stamp.h"

#include <algorithm>

namespace memtrace::symbolizer {
namespace {

thread_local FileRecorder* t_recorder = nullptr;

}  // namespace

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

FileRecorder::FileRecorder(std::vector<FileStamp>* stamps) : stamps_(stamps), outer_(t_recorder) {
  t_recorder = this;
}

FileRecorder::~FileRecorder() { t_recorder = outer_; }

void FileRecorder::Note(const FileStamp& stamp) {
  if (t_recorder == nullptr) return;
  std::vector<FileStamp>& stamps = *t_recorder->stamps_;
  const bool known = std::any_of(stamps.begin(), stamps.end(), [&](const FileStamp& other) {
    return other.path == stamp.path;
  });
  if (!known) stamps.push_back(stamp);
}

}  // namespace memtrace::symbolizer
