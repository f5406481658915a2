// GraphView: what the user asked about the heap graph, answered; and how its things are named.
//
// One thread. Refers to the view, the stacks and the report, which outlive it.

#ifndef MEMTRACE_REPORT_RENDER_GRAPH_VIEW_H_
#define MEMTRACE_REPORT_RENDER_GRAPH_VIEW_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/leak/graph_report.h"
#include "report/render/graph_questions.h"
#include "report/render/text_report.h"
#include "report/render/view.h"
#include "report/trace/stack_table.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

class GraphView {
 public:
  // NotFound, InvalidArgument: a question is about nothing that is there; the message says
  // what can be asked.
  static absl::StatusOr<GraphView> Create(const GraphQuestions& questions, const ReportView& view,
                                          const StackTable& stacks,
                                          const leak::Resolution& resolution,
                                          leak::GraphReport* report);

  const ReportView& view() const { return *view_; }
  leak::GraphReport& report() const { return *report_; }
  const std::optional<leak::HeapSummary>& summary() const { return summary_; }
  const std::optional<leak::WhyAnswer>& why() const { return why_; }
  const std::optional<leak::PointersAnswer>& pointers() const { return pointers_; }
  const GraphQuestions& questions() const { return questions_; }

 private:
  GraphQuestions questions_;
  const ReportView* view_ = nullptr;
  leak::GraphReport* report_ = nullptr;
  std::optional<leak::HeapSummary> summary_;
  std::optional<leak::WhyAnswer> why_;
  std::optional<leak::PointersAnswer> pointers_;
};

// "variable g_cache of app"; not escaped.
std::string RootGroupText(const leak::RootGroups& roots, uint32_t group);
// "variable g_cache+16 of app, at 0x404050"; not escaped.
std::string RootText(const leak::RootGroups& roots, size_t root);
// "variable", "stack", ...: in JSON.
absl::string_view RootKindName(leak::RootGroup::Kind kind);
// "start", "interior" or a heuristic's name.
absl::string_view PointerName(leak::Pointer pointer);

// The answers that were asked for.
std::string GraphText(const GraphView& graph, const TextOptions& options);
// The members "graph", "why", "who_points_at" and "unnamed_variables", each after a comma.
void WriteGraphJson(const GraphView& graph, size_t top, words::Sink& out);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_GRAPH_VIEW_H_
