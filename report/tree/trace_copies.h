// FullestCopies: of several files of one trace the one that has most of it.
//
// A trace may be there raw and packed, or copied while it was still written, and a
// directory is read by the names of its files: what counts is not which comes first, but
// which goes on to the end.

#ifndef MEMTRACE_REPORT_TREE_TRACE_COPIES_H_
#define MEMTRACE_REPORT_TREE_TRACE_COPIES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "report/tree/trace_set.h"

namespace memtrace::report {

// The file to read for each trace id, as an index into the files of `set`. Of several files with
// the same id, one that has the end is taken before one that has not, then one with more events,
// then the first. If a trace has a single file, only the header of that is read; files that are
// no traces are left out.
absl::flat_hash_map<uint64_t, size_t> FullestCopies(const TraceSet& set);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TRACE_COPIES_H_
