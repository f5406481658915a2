#include "report/gate/baseline_of.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/base/path.h"
#include "report/words/units.h"

namespace memtrace::report::gate {

std::string CallerWithoutLine(const render::ReportView& names, StackId stack) {
  const Frame* frame = names.Caller(stack);
  if (frame == nullptr) return "[no stack]";
  const absl::string_view file = FileNameOf(frame->file.empty() ? frame->module : frame->file);
  // An offset in a module changes with each build of it.
  if (frame->function.empty()) return std::string(file);
  return file.empty() ? frame->function : absl::StrCat(frame->function, "  ", file);
}

absl::Status MayBecomeBaseline(const GateResult& result, const render::ReportView& names) {
  for (const GateLeak& leak : result.leaks) {
    if (!result.policy.fail_on.Has(leak.kind)) continue;
    if (const std::string module = names.NamelessModule(leak.stack); !module.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          module, " is gone or another build now, so that the functions that leak have no names; "
          "check the trace before the program is built anew"));
    }
  }
  return absl::OkStatus();
}

std::vector<BaselineEntry> BaselineOf(const GateResult& result, const render::ReportView& names) {
  std::vector<BaselineEntry> entries;
  for (const GateLeak& leak : result.leaks) {
    if (!result.policy.fail_on.Has(leak.kind)) continue;
    BaselineEntry entry;
    entry.kind = leak.kind;
    entry.fingerprint = leak.fingerprint;
    entry.bytes = leak.most.bytes;
    entry.blocks = leak.most.blocks;
    if (leak.most_lost.blocks > leak.most.blocks || leak.most_lost.bytes > leak.most.bytes) {
      entry.lost = leak.most_lost;
    }
    entry.program = leak.program;
    entry.caller = CallerWithoutLine(names, leak.stack);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace memtrace::report::gate
