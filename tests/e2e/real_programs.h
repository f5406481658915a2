// What every test of a real program checks, for one command of it:
//
//   - standard output, standard error and exit status are those of a run without
//     the library;
//   - for every process of it that has a trace, allocations, frees and bytes are
//     those that the counting shim saw in the same run;
//   - processes that the shim saw allocate have a trace;
//   - nothing was dropped.

#ifndef MEMTRACE_TESTS_E2E_REAL_PROGRAMS_H_
#define MEMTRACE_TESTS_E2E_REAL_PROGRAMS_H_

#include <map>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {

// Where one traced and counted run left its files.
struct Evidence {
  TempDir traces;
  TempDir counts;
};

// Holds every trace against the counts of its process. `under_way`: so many calls may have
// been in the middle, known to one of the two only, when their threads were ended.
void ExpectTracesEqualCounts(const Evidence& evidence, uint64_t under_way = 0);

// Runs `command` plain, under memtrace alone and under memtrace with the shim,
// expects equal behaviour, equal counts, and returns the report of the process
// that was started, which is called `program`.
Json TraceRealProgram(const Command& command, const std::string& program);

// The same totals from a run of its own under the shim alone: for programs that do
// the same thing each time.
void ExpectSameCountInARunOfItsOwn(const Command& command, const std::string& program);

// A small C++ file with much of the standard library, which a compiler works long on.
std::string HeaderHeavySource();

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_REAL_PROGRAMS_H_
