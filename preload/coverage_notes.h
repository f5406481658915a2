// CoverageNotes: sentences of the trace about what it cannot contain. A fork child has the
// same blind spots as its parent, so they are kept and written again into its trace. Where a trace
// may lose them, it is KeptRecords that writes them again.
//
// Any thread, inside a Section. No lock: a note that two threads add at once may be there
// twice.

#ifndef MEMTRACE_PRELOAD_COVERAGE_NOTES_H_
#define MEMTRACE_PRELOAD_COVERAGE_NOTES_H_

#include <cstdint>
#include <string_view>

namespace memtrace {

// Once each. Those that do not fit are counted.
void AddCoverageNote(std::string_view note);
// To be called in a fork child, for its own trace.
void WriteCoverageNotesAgain();
uint64_t unwritten_coverage_notes();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_COVERAGE_NOTES_H_
