// What a tracee tells of its own allocations (tests/tracees/expect.h), and whether the
// report says the same.

#ifndef MEMTRACE_TESTS_E2E_EXPECTED_STACKS_H_
#define MEMTRACE_TESTS_E2E_EXPECTED_STACKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {

struct Expected {
  uint64_t bytes = 0;
  uint64_t count = 0;
  Words functions;  // the allocating one first
};

struct Told {
  std::vector<Expected> expected;
  std::map<std::string, long> numbers;
};

Told Parse(const std::string& out);

// Is the function of this frame `name`, without its arguments and namespaces?
bool IsFunction(const Json& frame, const std::string& name);
std::string Names(const Json& stack);
bool IsMarker(const Json& frame);

// Every block of these sizes comes from exactly these functions, and so often.
void ExpectStacks(const Json& report, const std::vector<Expected>& all);

// The counters of the library, as `memtrace info` prints them.
std::map<std::string, uint64_t> Counters(const std::string& trace);

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_EXPECTED_STACKS_H_
