// What a clock of the kernel says now.

#ifndef MEMTRACE_REPORT_BASE_CLOCK_H_
#define MEMTRACE_REPORT_BASE_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace memtrace::report {

inline uint64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_CLOCK_H_
