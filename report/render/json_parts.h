// What the JSON of one trace and that of several share.

#ifndef MEMTRACE_REPORT_RENDER_JSON_PARTS_H_
#define MEMTRACE_REPORT_RENDER_JSON_PARTS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "report/render/view.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

using Json = nlohmann::ordered_json;

inline double Seconds(double ns) { return ns / 1e9; }
inline double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// The text of `json`, on one line, in ASCII; names that are not UTF-8 have their
// bad bytes replaced.
std::string Dump(const Json& json);

// "end", "exit_status" and "end_signal", null where they are not known, as of an imported log.
void AddEndJson(const ProcessInfo& process, Json* json);

Json StackJson(const ReportView& view, StackId stack);  // innermost first
Json FaultsJson(const ReportView& view, size_t top);
Json ResidentJson(const ReportView& view, size_t top);
Json SiteJson(const ReportView& view, const Site& site);
// Adds, for a sampled trace, how many samples an estimate is made of, and its 95 % interval.
void AddSample(Json* json, absl::string_view of, const SampledSum& sum);
// The tables of usage_tables.h and stacked_timeline.h, as members of the report and of a site.
Json StackedTimelineJson(const ReportView& view);
Json LifetimesJson(const ReportView& view);
Json ModulesJson(const ReportView& view);
Json ExchangeJson(const ReportView& view, const ThreadExchange& exchange);
Json MismatchesJson(const ReportView& view);
Json InvalidFreesJson(const ReportView& view);
Json SiteLifetimeJson(const ReportView& view, const Site& site);
Json SiteMovesJson(const Site& site);
Json SiteSizesJson(const Site& site);
// Blocks that were not freed, where no scan tells of what kind they are; and loss records of a scan.
Json LeakJson(const ReportView& view, const SiteGroup& group);
Json LossJson(const ReportView& view, const ReportView::Loss& loss);
Json LeakScanJson(const ReportView& view, const LeakScan& scan);
// The words of the reports for the keys of others of their members: of each kind of leaks, of each
// part of the resident memory.
Json LeakKindsJson();
Json ResidentPartsJson();
// The amounts by kind, from "definite" to "reachable".
Json LeakTotalsJson(const std::array<LeakAmount, kLeakKinds>& totals);

// Writes the members of a document's object one by one, behind the first, on a line each.
class MemberWriter {
 public:
  explicit MemberWriter(words::Sink* out) : out_(*out) {}
  void operator()(absl::string_view key, const Json& value) const;

 private:
  words::Sink& out_;
};

// An array of at most `limit` rows, one on each line.
template <typename Rows, typename ToJson>
void WriteArray(const Rows& rows, size_t limit, ToJson to_json, words::Sink& out) {
  out.Write("[");
  const size_t count = std::min(limit, rows.size());
  for (size_t i = 0; i < count && !out.done(); ++i) {
    out.Write(i == 0 ? "\n    " : ",\n    ");
    out.Write(Dump(to_json(rows[i])));
  }
  out.Write(count == 0 ? "]" : "\n  ]");
}

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_JSON_PARTS_H_
