#include "report/growth/shutdown.h"

#include <algorithm>

namespace memtrace::report {

uint64_t ShutdownBegin(std::span<const TimelinePoint> timeline, uint64_t from_ns, uint64_t end_ns) {
  constexpr double kFreesForAnAllocation = 10;
  const uint64_t earliest = end_ns - (end_ns - std::min(from_ns, end_ns)) / 10;
  double sum = 0, best = 0;
  uint64_t begin = UINT64_MAX;
  for (size_t i = timeline.size(); i-- > 0;) {
    const uint64_t begins = i == 0 ? from_ns : timeline[i - 1].time_ns;
    if (begins < earliest) break;
    sum += static_cast<double>(timeline[i].frees) -
           kFreesForAnAllocation * static_cast<double>(timeline[i].allocations);
    if (sum > best) {
      best = sum;
      begin = begins;
    }
  }
  return begin;
}

}  // namespace memtrace::report
