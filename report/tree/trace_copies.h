// FullestCopies: of several files of one trace the one that has most of it.
//
// A trace may be there raw and packed, or copied while it was still written, and a directory is read by
// the names of its files: what counts is not which comes first, but which goes on to the end.

#ifndef MEMTRACE_REPORT_TREE_TRACE_COPIES_H_
#define MEMTRACE_REPORT_TREE_TRACE_COPIES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "report/tree/trace_set.h"

namespace memtrace::report {

// Of each trace id that files of `set` have: the one to read, as an index into them. One that has
// the end comes before one that has not, then one with more events; of equal ones the first.
// Of a trace with a single file only the header is read; what is no trace is left out.
absl::flat_hash_map<uint64_t, size_t> FullestCopies(const TraceSet& set);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TRACE_COPIES_H_
