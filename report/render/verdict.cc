#include "report/render/verdict.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/analysis/invalid_frees.h"
#include "report/leak/leak_scans.h"
#include "report/render/growing.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

// With what hangs on it, as the amount of a loss record is told.
std::string LossVerdict(const ReportView& view, const TextOptions& options) {
  const LeakScan* scan = view.leak_scan();
  if (scan == nullptr) return "";
  const LeakAmount& direct = scan->totals[static_cast<size_t>(LeakKind::kDefinite)];
  const LeakAmount& indirect = scan->totals[static_cast<size_t>(LeakKind::kIndirect)];
  if (direct.blocks == 0) return "";
  const LossRecord* most = nullptr;
  for (const LossRecord& record : scan->records) {
    if (record.kind != LeakKind::kDefinite || record.blocks == 0 || record.suppressed) continue;
    if (!view.Matches(record.stack)) continue;
    if (most == nullptr ||
        record.bytes + record.indirect_bytes >= most->bytes + most->indirect_bytes) {
      most = &record;  // the later of two is the larger by memcheck's order
    }
  }
  const uint64_t bytes = direct.bytes + indirect.bytes;
  return absl::StrCat(
      bytes == 0
          ? absl::StrCat(words::Plural(direct.blocks + indirect.blocks, "block"), " of 0 bytes")
          : words::HumanBytes(bytes),
      scan->frees_unseen ? " lost, if it was not freed where frees are not seen"
                         : " lost for certain",
      indirect.blocks == 0 ? ""
                           : absl::StrCat(", ", words::HumanBytes(direct.bytes), " of it directly"),
      leak::IsAtExit(*scan) ? "" : absl::StrCat(", at scan ", scan->number),
      most == nullptr ? ""
                      : absl::StrCat("; most: ", CallerInSentence(view, most->stack, options)));
}

std::string InvalidFreesVerdict(const ReportView& view, const TextOptions& options) {
  const InvalidFrees& frees = view.analysis().invalid_frees;
  if (frees.stories.empty()) return "";
  return absl::StrCat(
      InvalidFreesPhrase(frees),
      InvalidFreesAreCertain(view.analysis()) ? "" : ", if all allocations are in the trace",
      ": a block of ", CallerInSentence(view, frees.stories.front().allocated.stack, options));
}

}  // namespace

std::vector<std::string> Verdicts(const ReportView& view, const TextOptions& options) {
  std::vector<std::string> verdicts = {InvalidFreesVerdict(view, options),
                                       LossVerdict(view, options), GrowingVerdict(view, options)};
  std::erase(verdicts, "");
  return verdicts;
}

}  // namespace memtrace::report::render
