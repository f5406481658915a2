// A program under MEMTRACE_CROSS_CHECK: it behaves as without the library, and every stack
// that was checked is libunwind's.

#ifndef MEMTRACE_TESTS_E2E_CROSS_CHECK_H_
#define MEMTRACE_TESTS_E2E_CROSS_CHECK_H_

#include <cstdint>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {

struct CrossCheckExpectation {
  int every = 1;               // MEMTRACE_CROSS_CHECK
  uint64_t checked = 1;        // at least so many stacks, in all of its processes
  bool same_behaviour = true;  // compare outcome and output with those of a run without
  bool marked = false;         // it has code without unwind information, which is shown
};

// Prints one line of counts for each program, which is what is published.
void ExpectNoDifference(const Command& command, const CrossCheckExpectation& expectation);

// The same of traces that are there already.
void ExpectNoDifferenceIn(const std::string& traces, const std::string& name,
                          const CrossCheckExpectation& expectation);

Command CrossChecked(Command command, const std::string& traces, int every);
std::string Info(const std::string& trace);  // `memtrace info`

// A directory that lives as long as the test program.
std::string TempDirectory();

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_CROSS_CHECK_H_
