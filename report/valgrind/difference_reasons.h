// Why the two tools may differ about a leak, as far as the leak itself shows it.

#ifndef MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_
#define MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_

#include "report/analysis.h"
#include "report/valgrind/comparison.h"

namespace memtrace::report::valgrind {

// Fills `reasons` and `expected`. `here_cut` and `there_cut`: a stack of that side ended early.
void Explain(const Analysis& analysis, const render::LossList& here, const ValgrindRun& there,
             bool here_cut, bool there_cut, ComparedLeak* leak);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_
