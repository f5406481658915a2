// Why the two tools may differ about a leak, as far as the leak itself shows it.

#ifndef MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_
#define MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_

#include <vector>

#include "report/findings/analysis.h"
#include "report/valgrind/comparison.h"

namespace memtrace::report::valgrind {

// A block that a runtime allocated for itself, as far as the names of the stack show it.
bool IsOfARuntime(const std::vector<render::LossFrame>& stack);

// Whether the trace has every allocation of its process, with its true amounts.
bool HasEveryAllocation(const Analysis& analysis);

// Of the stacks of a leak.
struct StackFacts {
  bool here_cut = false, there_cut = false;  // one of that side ended early
  bool inherited = false;  // the trace is of a fork child, and no allocation in it has such a stack
  bool kept_by_mapping = false;  // here memory that the program mapped leads to it
  // It found no pair, and the other side has one that differs only in where calls lie in code
  // without names.
  bool same_shape = false;
  bool declared_by_glib = false;  // there it is of blocks that GLib told Valgrind of
  bool slices_of_malloc = false;  // here GLib takes its slices from malloc, as it does there
};

// Fills `reasons` and `expected`.
void Explain(const Analysis& analysis, const render::LossList& here, const ValgrindRun& there,
             const StackFacts& facts, ComparedLeak* leak);

// Of all leaks together: those of which the same blocks are lost on both sides, and others of
// them definitely. Where as many blocks are definitely lost here as there, only the first block
// of some circles is another one, which is expected.
void ExplainCircles(std::vector<ComparedLeak>* leaks);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DIFFERENCE_REASONS_H_
