#include "report/pages/page_counts.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/whole_io.h"

namespace memtrace::report::pages {
namespace {

// A read costs as much as some hundred entries do.
constexpr uint64_t kNear = 64;
constexpr uint64_t kLongestRun = 8192;

std::vector<uint64_t> ReadRun(int fd, uint64_t first, uint64_t count) {
  std::vector<uint64_t> values(count, 0);
  size_t got;  // less, or an error, beyond the last frame
  base::ReadUpTo(fd, first * sizeof(uint64_t), values.data(), count * sizeof(uint64_t), &got);
  return values;
}

}  // namespace

PageCounts PageCounts::Open(const std::string& directory) {
  PageCounts counts;
  const auto open_one = [&](const char* name) {
    const std::string path = absl::StrCat(directory, "/", name);
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.ok() && counts.why_not_.empty()) {
      counts.why_not_ = absl::StrCat(path, ": ", strerror(errno));
    }
    return fd;
  };
  counts.count_ = open_one("kpagecount");
  counts.flags_ = open_one("kpageflags");
  return counts;
}

void PageCounts::Look(std::span<uint64_t> frames,
                      absl::flat_hash_map<uint64_t, FrameFacts>* facts) const {
  std::sort(frames.begin(), frames.end());
  for (size_t i = 0; i < frames.size();) {
    size_t end = i + 1;
    while (end < frames.size() && frames[end] - frames[end - 1] <= kNear &&
           frames[end] - frames[i] < kLongestRun) {
      ++end;
    }
    const uint64_t first = frames[i], count = frames[end - 1] - first + 1;
    const std::vector<uint64_t> mapped = ReadRun(count_.get(), first, count);
    const std::vector<uint64_t> flags = ReadRun(flags_.get(), first, count);
    for (; i < end; ++i) {
      (*facts)[frames[i]] = {mapped[frames[i] - first], flags[frames[i] - first]};
    }
  }
}

}  // namespace memtrace::report::pages
