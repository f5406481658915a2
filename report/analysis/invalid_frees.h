// Invalid frees: what became of the blocks at addresses that were freed when they were no live
// block.
//
// The pass over the heap knows live blocks, not those that were freed: it notes the address
// (HeapModel::first_unknown_frees()). This second pass over the trace, in the same order, follows
// what was allocated and freed at these few addresses and at nothing else, and tells double frees
// from frees inside of a block and from those of memory that the trace knows nothing of.
//
// Memory: by the number of addresses, at most HeapModel::kMostUnknownFrees (of a
// forked child kMostOfForkedChild), and what the order of the events takes. One
// thread besides those that decode.

#ifndef MEMTRACE_REPORT_ANALYSIS_INVALID_FREES_H_
#define MEMTRACE_REPORT_ANALYSIS_INVALID_FREES_H_

#include <functional>
#include <span>
#include <vector>

#include "report/findings/analysis.h"
#include "report/findings/invalid_free.h"
#include "report/trace/stack_table.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

// Whether all that was before each free of what was no live block is known.
bool CanTellInvalidFrees(const Analysis& analysis);

// `stacks` has those of the pass that found `unknown`. `stop` as in AnalyzeOptions, may be empty:
// after it nothing is told. `jobs` threads may be at work.
InvalidFrees FindInvalidFrees(TraceReader* reader, std::span<const UnknownFree> unknown,
                              StackTable* stacks, unsigned jobs, const std::function<bool()>& stop);

// The invalid frees of an analysis that are certain. Where allocations may be missing from the
// trace, what looks like a second free may be the first of a block whose allocation was not seen; a
// free of an address inside of a live block is wrong in any case.
std::vector<const InvalidFree*> CertainInvalidFrees(const Analysis& analysis);
// Whether all of them are.
bool InvalidFreesAreCertain(const Analysis& analysis);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_INVALID_FREES_H_
