#include "report/names/glib_slices.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "report/names/frame.h"

namespace memtrace::report {

bool IsOfGLibsSlices(absl::string_view function) {
  return absl::StartsWith(function, "g_slice_");
}

bool IsASlab(const SiteSymbols& symbols, format::AllocFunction function, StackId stack) {
  using format::AllocFunction;
  // Of few stacks the names are looked at.
  if (function != AllocFunction::kPosixMemalign && function != AllocFunction::kMemalign) {
    return false;
  }
  bool found = false;
  symbols.ForEachFrame(stack,
                       [&](const Frame& frame) { found |= IsOfGLibsSlices(frame.function); });
  return found;
}

bool HasSlabs(const SiteSymbols& symbols, const LeakScan& scan) {
  return std::ranges::any_of(scan.records, [&](const LossRecord& record) {
    return record.blocks != 0 && IsASlab(symbols, record.function, record.stack);
  });
}

}  // namespace memtrace::report
