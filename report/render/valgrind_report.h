// The report of leaks and of errors of frees in memcheck's two shapes: lines that begin with
// ==PID==, and XML of protocol 4. Whatever reads Valgrind's reads these.
//
// Only what a scan found is written in these shapes: they have no words for "not known",
// and nothing lost in them reads as no leaks. Pure functions; names are escaped.

#ifndef MEMTRACE_REPORT_RENDER_VALGRIND_REPORT_H_
#define MEMTRACE_REPORT_RENDER_VALGRIND_REPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "report/leak/leak_kinds.h"
#include "report/render/free_errors.h"
#include "report/render/valgrind_losses.h"
#include "report/render/view.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

struct UsedSuppression {
  std::string name;
  uint64_t count = 0;   // loss records
  uint64_t bytes = 0, blocks = 0;
  bool of_frees = false;  // then `count` is of errors
};

struct ValgrindStyle {
  enum class LeakCheck { kNo, kSummary, kFull } leak_check = LeakCheck::kFull;
  LeakKindSet show = LeakKindSet::OfScans();
  LeakKindSet errors = LeakKindSet::Default();
  int verbosity = 1;  // 0: -q, loss records alone
  std::string version;  // of memtrace
  std::vector<std::string> tool_command;  // what was called, for the XML
  std::vector<FreeError> free_errors;
  std::vector<UsedSuppression> suppressions;
  // Printed behind each loss record, and each error, that is shown; empty: nothing.
  std::function<std::string(const Loss&)> suppression_for;
  std::function<std::string(const FreeError&)> suppression_for_free;
  std::vector<std::string> remarks;  // for the head of the report
  std::string user_comment;
  std::string why_unknown;  // why the leaks are not known; empty: the trace says it
};

// Loss records that count as errors, and errors of frees with how often they were made;
// and the suppressed ones.
struct ValgrindErrors {
  uint64_t errors = 0, contexts = 0;
  uint64_t suppressed = 0, suppressed_contexts = 0;
};
ValgrindErrors CountErrors(const LossList& losses, const ValgrindStyle& style);

// Why there is no scan to report.
std::string WhyLeaksAreUnknown(const ReportView& view, const ValgrindStyle& style);

// The first lines of memcheck's text: which program it is of. Nothing with -q.
void RenderValgrindHead(const ReportView& view, const ValgrindStyle& style, words::Sink& out);

// Errors of frees alone, in memcheck's text: of a program that was ended before it could be
// scanned they are known.
void RenderFreeErrors(const ReportView& view, const ValgrindStyle& style, words::Sink& out);

// The same in XML, with the signal that ended the program. A line of the preamble says why the
// leaks are not known, and the program has no state FINISHED, behind which leaks are told, so that
// readers do not take it for one without. Nothing is written where there is no error, no signal and
// no exec.
void RenderValgrindXmlWithoutLeaks(const ReportView& view, const ValgrindStyle& style,
                                   words::Sink& out);

// FailedPrecondition when the memory was not scanned or that failed; nothing is written then.
absl::Status RenderValgrindText(const ReportView& view, const LossList& losses,
                                const ValgrindStyle& style, words::Sink& out);
absl::Status RenderValgrindXml(const ReportView& view, const LossList& losses,
                               const ValgrindStyle& style, words::Sink& out);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_VALGRIND_REPORT_H_
