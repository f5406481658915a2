// Usage samples: what the kernel counts of the process (faults, resident memory, switches of the
// processor), put into a thread's ring among the events. At most one a millisecond, or where the
// program calls the kernel for mappings in 100 us, by whichever thread comes by.
//
// The same moment serves what else is done now and then by a thread that records: faults are
// drained, a scan that somebody asked for is begun.
//
// Threads: any; of several one takes the sample. Slow: system calls.

#ifndef MEMTRACE_PRELOAD_USAGE_SAMPLES_H_
#define MEMTRACE_PRELOAD_USAGE_SAMPLES_H_

#include <cstdint>

#include "preload/signals_blocked.h"
#include "preload/thread_state.h"

namespace memtrace {

// The least time between two samples: at ordinary events, and at events that call the kernel anyway
// (a mapping), beside which a sample is cheap.
inline constexpr uint64_t kSampleUs = 1'000;
inline constexpr uint64_t kMappingSampleUs = 100;

// Takes a sample, unless one was taken less than `min_us` ago, or they cost too
// much. `now`: g_clock's.
void SampleUsage(ThreadState& state, uint64_t now, uint64_t min_us);
// Takes a sample that somebody asks for, so whatever it costs; SampleUsage() takes
// fewer where they are dear.
void SampleUsageNow(ThreadState& state);
// The same. `calls` is the outermost of this thread, and not a vfork child's: a scan that is asked
// for sends a signal that the program does not block.
void SampleUsageWithin(ThreadState& state, const SignalsBlocked& calls);

uint64_t ResidentBytes();  // 0: not known

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_USAGE_SAMPLES_H_
