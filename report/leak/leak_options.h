// What the user may choose about the leak check. The defaults are memcheck's.

#ifndef MEMTRACE_REPORT_LEAK_LEAK_OPTIONS_H_
#define MEMTRACE_REPORT_LEAK_LEAK_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/leak/heuristics.h"

namespace memtrace::report::leak {

// Code of an instance of a module, as stacks have it (StackNode).
struct CodeRange {
  uint32_t instance = 0;
  uint64_t begin = 0, end = 0;
};

// How much of two stacks must be equal for their blocks to be one record.
struct Resolution {
  // Stacks whose innermost so many frames are equal are one, the allocating function counted
  // as a frame: 2 low, 4 med. 0: all frames (high).
  size_t frames = 0;
  // operator new: part of the allocating function, as for memcheck, and no frame of its own.
  std::vector<CodeRange> operator_new;
};

// Which block of a lost cycle counts as the lost one: that at the lowest address, as for memcheck;
// the one that was allocated first; or the one whose code comes first in its module, which is the
// same in each run of a program.
enum class LeaderBy : uint8_t { kAddress, kSequence, kCode };

struct LeakOptions {
  HeuristicSet heuristics = kAllHeuristics;
  LeaderBy leader = LeaderBy::kAddress;
  Resolution resolution;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LEAK_OPTIONS_H_
