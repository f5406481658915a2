// The words for what faults were about, in text and for machines.

#ifndef MEMTRACE_REPORT_RENDER_FAULT_WORDS_H_
#define MEMTRACE_REPORT_RENDER_FAULT_WORDS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "report/render/view.h"

namespace memtrace::report::render {

absl::string_view MemoryKindText(MemoryKind kind);  // "a thread's stack"
absl::string_view MemoryKindName(MemoryKind kind);  // "stack"
absl::string_view FaultSourceName(const Analysis& analysis);  // "perf", "pagemap", "getrusage"
absl::string_view RssPartText(RssPart part);  // "requested bytes of live blocks"
absl::string_view RssPartName(RssPart part);  // "live"

// The function of the instruction; "the kernel".
std::string TouchedBy(const ReportView& view, const FaultToucher& toucher);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_FAULT_WORDS_H_
