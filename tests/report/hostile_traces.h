// Traces that nobody's program wrote: each makes one thing of a trace as many, as deep,
// as long or as late as its bytes allow. All are well-formed: every checksum is right.
//
// What must hold of the commands on each of them is in tests/e2e/hostile_traces_test.cc.

#ifndef MEMTRACE_TESTS_REPORT_HOSTILE_TRACES_H_
#define MEMTRACE_TESTS_REPORT_HOSTILE_TRACES_H_

#include <functional>
#include <string>
#include <vector>

namespace memtrace::report {

struct HostileTrace {
  std::string name;  // what there is too much of: "distinct_stacks"
  std::function<std::string()> build;
};

std::vector<HostileTrace> HostileTraces();

// Escape sequences of terminals, line ends, marks that turn the direction of text, bytes
// that are no UTF-8, the beginnings of formulas, shell and markup syntax; `field` tells
// where it stood. All of it is one string without NUL.
std::string HostileText(const std::string& field);

// A trace with HostileText() in every string that a trace can hold.
std::string TraceOfHostileTexts();

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_HOSTILE_TRACES_H_
