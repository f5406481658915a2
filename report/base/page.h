// The pages of the processors that the library is made for (preload/arch/). What a trace or a
// process says of its own counts before it.

#ifndef MEMTRACE_REPORT_BASE_PAGE_H_
#define MEMTRACE_REPORT_BASE_PAGE_H_

#include <cstdint>

namespace memtrace::report {

inline constexpr uint64_t kPageBytes = 4096;

// Bytes as the kernel maps them.
constexpr uint64_t WholePages(uint64_t bytes) {
  return (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_PAGE_H_
