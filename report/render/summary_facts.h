// SummaryFacts(): what is told of a run as a whole: what ran, how it ended, what it allocated and
// kept. The text report, the JSON document and the page all say it in these words.
//
// Any thread.

#ifndef MEMTRACE_REPORT_RENDER_SUMMARY_FACTS_H_
#define MEMTRACE_REPORT_RENDER_SUMMARY_FACTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/render/style.h"
#include "report/render/view.h"

namespace memtrace::report::render {

struct Fact {
  absl::string_view label;  // "Ended"; two that follow each other may have the same
  std::string text;         // names in it are bytes of the trace: whoever shows them escapes them
  Ink ink = Ink::kPlain;    // how good or bad it is
};

// In the order in which one reads them. What the trace lacks is not among them.
std::vector<Fact> SummaryFacts(const ReportView& view);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SUMMARY_FACTS_H_
