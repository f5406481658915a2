// RandomTrace: a trace with everything in it that an analysis has state for, likely and
// unlikely: threads that take each other's blocks, reallocs that fail, addresses allocated twice,
// pools, mappings, phases, faults, lost and damaged blocks. It is well-formed and makes little sense.

#ifndef MEMTRACE_TESTS_REPORT_RANDOM_TRACE_H_
#define MEMTRACE_TESTS_REPORT_RANDOM_TRACE_H_

#include <cstdint>
#include <random>
#include <string>

namespace memtrace::report {

struct RandomTraceOptions {
  int events = 300;
  int threads = 4;
  uint64_t step_ns = 3000;  // at most, between two events
  bool ended = true;        // has its end record
};

// The bytes; `duration_ns` receives the time of the last event.
std::string RandomTrace(const RandomTraceOptions& options, std::mt19937_64& random,
                        uint64_t* duration_ns);

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_RANDOM_TRACE_H_
