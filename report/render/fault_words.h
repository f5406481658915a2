// The words for what faults were about, in text and for machines.

#ifndef MEMTRACE_REPORT_RENDER_FAULT_WORDS_H_
#define MEMTRACE_REPORT_RENDER_FAULT_WORDS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/render/view.h"

namespace memtrace::report::render {

absl::string_view MemoryKindText(MemoryKind kind);  // "a block of malloc"
absl::string_view MemoryKindName(MemoryKind kind);  // "block"
absl::string_view FaultSourceName(const Analysis& analysis);  // "perf", "pagemap", "getrusage"
absl::string_view RssPartText(RssPart part);  // "requested bytes of live blocks"
absl::string_view RssPartName(RssPart part);  // "live"

// Sentences that say which faults were found: "256 of 257 faults came when memset touched the block
// allocated by main first_touch.c:33, from 6.1 ms to 6.3 ms; none in the 9.2 ms after that", and
// how much later than the heap grows faults come. `name` makes of a function and its place a text
// that fits where the sentences are shown.
std::vector<std::string> FaultSentences(
    const ReportView& view,
    const std::function<std::string(absl::string_view function, absl::string_view place)>& name);

// Whether minor faults go with the heap, and what to do about it. None where the heap is of some
// blocks: the faults are of the whole process.
std::vector<std::string> CorrelationSentences(const Analysis& analysis);

// The function of the instruction; "the kernel".
std::string TouchedBy(const ReportView& view, const FaultToucher& toucher);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_FAULT_WORDS_H_
