// Freezer: whether a process is frozen by its control group, as by `docker pause` and
// `systemctl freeze`. The kernel shows no state of its threads by which one would know.

#ifndef MEMTRACE_REPORT_PRESSURE_FREEZER_H_
#define MEMTRACE_REPORT_PRESSURE_FREEZER_H_

#include <cstdint>

#include "report/pressure/kernel_files.h"

namespace memtrace::report::pressure {

// By its own group or one around it. False also where that cannot be seen.
bool IsFrozen(const KernelFiles& files, uint32_t pid);

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_FREEZER_H_
