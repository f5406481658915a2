// InLongRun(): is this the long set of tests (`scripts/test --long`), where a test may take minutes?

#ifndef MEMTRACE_TESTS_LONG_RUN_H_
#define MEMTRACE_TESTS_LONG_RUN_H_

#include <cstdlib>

namespace memtrace {

inline bool InLongRun() { return std::getenv("MEMTRACE_LONG_TESTS") != nullptr; }

}  // namespace memtrace

#endif  // MEMTRACE_TESTS_LONG_RUN_H_
