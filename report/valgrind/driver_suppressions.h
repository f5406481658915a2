// Suppressions of the driver: --suppressions, --default-suppressions, --gen-suppressions.

#ifndef MEMTRACE_REPORT_VALGRIND_DRIVER_SUPPRESSIONS_H_
#define MEMTRACE_REPORT_VALGRIND_DRIVER_SUPPRESSIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "report/render/valgrind_report.h"
#include "report/render/view.h"
#include "report/suppress/suppressions.h"
#include "report/valgrind/driver_options.h"

namespace memtrace::report::valgrind {

class DriverSuppressions {
 public:
  absl::Status Load(const DriverOptions& options);

  // Sets Loss::suppressed and FreeError::suppressed, and counts.
  void Apply(const render::ReportView& view, render::LossList* losses,
             std::vector<render::FreeError>* free_errors);
  // The suppressions that matched in the latest Apply().
  std::vector<render::UsedSuppression> Used() const;
  // The text of a suppression that would match this loss, or this error.
  std::string For(const render::ReportView& view, const render::Loss& loss) const;
  std::string For(const render::ReportView& view, const render::FreeError& error) const;

 private:
  suppress::Suppressions suppressions_;
};

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DRIVER_SUPPRESSIONS_H_
