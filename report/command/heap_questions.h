// HeapQuestions: --graph, --why and --who-points-at of `memtrace report`, from the analysis
// that holds the scan to the answers.
//
//   HeapQuestions questions(asked, scan);
//   analyze.leak_observer = questions.Observer();    may be empty
//   ... analysis, symbols of Stacks() as well, view ...
//   questions.Answer(...); questions.answers()
//
// One thread; not moved between these calls.

#ifndef MEMTRACE_REPORT_COMMAND_HEAP_QUESTIONS_H_
#define MEMTRACE_REPORT_COMMAND_HEAP_QUESTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "report/leak/graph_report.h"
#include "report/leak/held_scan.h"
#include "report/render/graph_view.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {

class HeapQuestions {
 public:
  // `scan` as ChooseScan() takes it. `hold`: held() is wanted, whatever is asked.
  HeapQuestions(const render::GraphQuestions& questions, uint32_t scan, bool hold)
      : questions_(questions), scan_(scan), hold_(hold || questions.any()) {}
  HeapQuestions(const HeapQuestions&) = delete;
  HeapQuestions& operator=(const HeapQuestions&) = delete;

  // Empty when nothing is asked.
  leak::LeakCheck::Observer Observer();
  // After the analysis; nullptr: nothing was asked, or there is no scan.
  const leak::HeldScan* held() const { return held_ ? &*held_ : nullptr; }
  // The stacks of the blocks of the scan.
  std::vector<StackId> Stacks() const;
  // The arguments must outlive this object.
  absl::Status Answer(const render::ReportView& view, const StackTable& stacks,
                      const leak::Resolution& resolution,
                      symbolizer::SymbolizerProcess* symbolizer);
  // After Answer(); nullptr: nothing was asked.
  const render::GraphView* answers() const { return answers_ ? &*answers_ : nullptr; }

 private:
  const render::GraphQuestions questions_;
  const uint32_t scan_;
  const bool hold_;
  std::optional<leak::HeldScan> held_;
  std::optional<leak::GraphReport> report_;
  std::optional<render::GraphView> answers_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_HEAP_QUESTIONS_H_
