// What a trace does not contain, in numbers and in sentences; how its process
// ended. From what the reader saw and the records say; without the events.

#ifndef MEMTRACE_REPORT_ANALYSIS_COVERAGE_H_
#define MEMTRACE_REPORT_ANALYSIS_COVERAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/records.h"
#include "report/findings/analysis.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

// After the events were read: damage in blocks is only found then. Fills what does
// not come from the heap model.
void FillCoverage(const TraceReader& reader, Analysis* analysis);

// `events_after_end_ns`: for so long the trace goes on behind its kEnd record; 0: it does not. An
// exec then failed; where its failure would have been told (but for a handler that jumped out of it,
// or a disk that was full) only if that is longer than the kernel takes to end the other threads.
void FillEnd(const TraceMetadata& metadata, uint64_t events_after_end_ns, ProcessInfo* process);

// Whether a reading that was interrupted had come to the last event. What it then had not found out
// is which frees of no live block were of blocks that had been freed before; and of a fork child,
// perhaps, which memory was free at its last scan.
bool InterruptedBehindTheEvents(const Analysis& analysis);

// "the reading was interrupted: this is of the first 41.7 % of the events, up to 1.204 s"; empty
// when it was not.
std::string InterruptionText(const Analysis& analysis);

// "at the size limit (MEMTRACE_MAX_BYTES)": of a format::RecordingStop.
absl::string_view WhyRecordingStopped(uint64_t why);

// Sentences that say how much of the run the analysis covers: whether it was interrupted, what the
// trace lacks, and the notes of the trace.
std::vector<std::string> CoverageNotes(const Analysis& analysis);

// Says how often the program stopped the recording, and what is in no figure because of that;
// harmless where it allocated nothing meanwhile. Without a text: it never did.
CoverageNote StopsNote(const Coverage& coverage);

// Whether it is about libraries whose calls of malloc pass by.
bool TellsOfDeepBind(const CoverageNote& note);

// "2 forked children could not create a trace: No space left on device (make room, or ...)"; empty:
// none was in that case.
std::string UntracedChildrenText(const Coverage& coverage);

// "Nothing" is good news only where everything was recorded, also of each child that the process
// forked, and the program did not stop that while it allocated.
bool AllRecorded(const Coverage& coverage);

// Whether each block that the program was given is in the trace, as far as is known. The
// free of a block that is not in it looks like a second free if an earlier block at the
// same address was freed. Those that were made while the program had stopped the recording are.
bool AllAllocationsSeen(const Analysis& analysis);

// Says which part of the run's time the events cover; empty: all of it.
std::string PartText(const Coverage& coverage);
// Says what PartText() says, or else that the process was still at work when its trace was opened.
std::string RunPartText(const Coverage& coverage);

// A phrase for each way in which the trace lacks events; none: it lacks nothing.
std::vector<std::string> MissingTexts(uint64_t dropped_events, bool truncated,
                                      std::string_view damage);

// Says all that the trace lacks: what MissingTexts() says, which part of the run's time the trace
// is of, and what the program left out. Not that the reading was interrupted.
std::vector<std::string> LossTexts(const Coverage& coverage);

// How much later than its time stamp an event may have been, by this clock.
uint64_t ClockSlackNs(format::ClockKind clock);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_COVERAGE_H_
