#include "report/tree/run_span.h"

#include <algorithm>

namespace memtrace::report {

RunSpan RunSpanOf(const std::vector<ProcessImage>& images) {
  const bool none_known = std::ranges::none_of(
      images, [](const ProcessImage& image) { return image.process.start_known(); });
  // Unsigned: the times of a damaged trace may be anything, and their sums then wrap.
  uint64_t begin = UINT64_MAX, end = 0, own_end = 0;
  for (const ProcessImage& image : images) {
    const ProcessInfo& process = image.process;
    if (!process.start_known() && !none_known) continue;
    const auto start = static_cast<uint64_t>(process.start_realtime_ns);
    begin = std::min(begin, start);
    end = std::max(end, start + process.duration_ns);
    own_end = std::max(own_end, start + process.own_duration_ns());
  }
  RunSpan span;
  if (images.empty()) return span;
  span.start_realtime_ns = static_cast<int64_t>(begin);
  span.duration_ns = end - std::min(begin, end);
  span.own_duration_ns = own_end - std::min(begin, own_end);
  return span;
}

}  // namespace memtrace::report
