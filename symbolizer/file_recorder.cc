#include "symbolizer/file_recorder.h"

#include <algorithm>

namespace memtrace::symbolizer {
namespace {

thread_local FileRecorder* t_recorder = nullptr;

}  // namespace

FileRecorder::FileRecorder(std::vector<base::FileStamp>* stamps)
    : stamps_(stamps), outer_(t_recorder) {
  t_recorder = this;
}

FileRecorder::~FileRecorder() { t_recorder = outer_; }

void FileRecorder::Note(const base::FileStamp& stamp) {
  if (t_recorder == nullptr) return;
  std::vector<base::FileStamp>& stamps = *t_recorder->stamps_;
  const bool known = std::any_of(stamps.begin(), stamps.end(), [&](const base::FileStamp& other) {
    return other.path == stamp.path;
  });
  if (!known) stamps.push_back(stamp);
}

}  // namespace memtrace::symbolizer
