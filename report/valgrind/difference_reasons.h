// Why the two tools may differ about a leak, as far as the leak itself shows it.

#ifndef MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_
#define MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_

#include <vector>

#include "report/analysis.h"
#include "report/valgrind/comparison.h"

namespace memtrace::report::valgrind {

// A block that a runtime allocated for itself, as far as the names of the stack show it.
bool IsOfARuntime(const std::vector<render::LossFrame>& stack);

// Fills `reasons` and `expected`. `here_cut` and `there_cut`: a stack of that side ended early.
void Explain(const Analysis& analysis, const render::LossList& here, const ValgrindRun& there,
             bool here_cut, bool there_cut, ComparedLeak* leak);

// Of all leaks together: those of which the same blocks are lost on both sides, and others of
// them definitely. Where as many blocks are definitely lost here as there, only the first block
// of some circles is another one, which is expected.
void ExplainCircles(std::vector<ComparedLeak>* leaks);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_
