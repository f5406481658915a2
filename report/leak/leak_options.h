// What the user may choose about the leak check. The defaults are memcheck's.

#ifndef MEMTRACE_REPORT_LEAK_LEAK_OPTIONS_H_
#define MEMTRACE_REPORT_LEAK_LEAK_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "report/leak/heuristics.h"

namespace memtrace::report::leak {

struct LeakOptions {
  HeuristicSet heuristics = kAllHeuristics;
  // Which block of a lost cycle counts as the lost one: the lowest address, as memcheck
  // does, or the one that was allocated first.
  bool leader_by_sequence = false;
  // Stacks whose innermost so many frames are equal are one, the allocating function counted
  // as a frame: 2 low, 4 med. 0: all frames (high).
  size_t resolution_frames = 0;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LEAK_OPTIONS_H_
