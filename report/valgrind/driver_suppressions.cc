#include "report/valgrind/driver_suppressions.h"

#include "report/leak/leak_kinds.h"
#include "report/suppress/memcheck_stack.h"

namespace memtrace::report::valgrind {
namespace {

constexpr char kNoName[] = "<insert_a_suppression_name_here>";

}  // namespace

absl::Status DriverSuppressions::Load(const DriverOptions& options) {
  if (options.default_suppressions) suppressions_.AddBuiltIn();
  for (const std::string& file : options.suppressions) {
    if (absl::Status status = suppressions_.AddFile(file); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void DriverSuppressions::Apply(const render::ReportView& view, render::LossList* losses,
                               std::vector<render::FreeError>* free_errors) {
  suppressions_.ForgetMatches();
  if (suppressions_.empty()) return;
  for (render::Loss& loss : losses->losses) {
    const std::vector<const Frame*> frames = view.Frames(loss.site_stack);
    suppress::Suppression* match =
        suppressions_.Match(loss.kind, suppress::AsMemcheckSees(loss.allocator, frames));
    if (match == nullptr) continue;
    loss.suppressed = true;
    ++match->records;
    match->blocks += loss.blocks;
    match->bytes += loss.bytes;
  }
  losses->Count();
  for (render::FreeError& error : *free_errors) {
    const std::vector<const Frame*> frames = view.Frames(error.site_stack);
    suppress::Suppression* match =
        suppressions_.MatchFree(suppress::AsMemcheckSeesFree(error.called, frames));
    if (match == nullptr) continue;
    error.suppressed = true;
    match->records += error.times;
  }
}

std::vector<render::UsedSuppression> DriverSuppressions::Used() const {
  std::vector<render::UsedSuppression> used;
  for (const suppress::Suppression& each : suppressions_.all()) {
    if (each.records == 0) continue;
    used.push_back({each.name, each.records, each.bytes, each.blocks, each.of_frees});
  }
  return used;
}

std::string DriverSuppressions::For(const render::ReportView& view,
                                    const render::FreeError& error) const {
  return suppress::SuppressionForFree(kNoName, error.called, view.Frames(error.site_stack));
}

std::string DriverSuppressions::For(const render::ReportView& view,
                                    const render::Loss& loss) const {
  return suppress::SuppressionFor(kNoName,
                                  loss.kind == LeakKind::kUnfreed ? "" : KindName(loss.kind),
                                  loss.allocator, view.Frames(loss.site_stack));
}

}  // namespace memtrace::report::valgrind
