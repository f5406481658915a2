#include "report/names/perl_frames.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"

namespace memtrace::report {
namespace {

// "perl", "perl5.36.0", "libperl.so.5.36".
bool IsPerl(absl::string_view module) {
  const absl::string_view name = FileNameOf(module);
  return absl::StartsWith(name, "perl") || absl::StartsWith(name, "libperl");
}

}  // namespace

bool PassesThroughPerl(const SiteSymbols& symbols, StackId stack) {
  bool found = false;
  symbols.ForEachFrame(stack, [&](const Frame& frame) {
    found |= IsPerl(frame.module) && (absl::StartsWith(frame.function, "Perl_") ||
                                      absl::StartsWith(frame.function, "perl_"));
  });
  return found;
}

std::string PerlNote(const SiteSymbols& symbols, const Analysis& analysis, const LeakScan& scan) {
  // Most programs have no perl: their stacks need not be looked through.
  if (std::ranges::none_of(analysis.modules,
                           [](const ModuleInfo& module) { return IsPerl(module.path); })) {
    return "";
  }
  const bool found = std::ranges::any_of(scan.records, [&](const LossRecord& record) {
    return record.kind != LeakKind::kReachable && record.blocks != 0 && !record.suppressed &&
           !record.of_runtime && PassesThroughPerl(symbols, record.stack);
  });
  return found ? kPerlKeeps : "";
}

}  // namespace memtrace::report
