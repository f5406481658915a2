#include "report/sqlite/site_rows.h"

#include "report/render/fault_words.h"

namespace memtrace::report::sqlite {

void WriteGrowth(const Growth& growth, Insert* row) {
  const bool judged = growth.verdict != Growth::Verdict::kUnknown;
  row->TextOrNull(VerdictName(growth.verdict)).NumberIf(judged, growth.held_until_exit);
  if (growth.verdict != Growth::Verdict::kGrowing) {
    row->Null().Null().Null().Null();
    return;
  }
  row->Real(growth.bytes_per_s).Real(growth.bytes_per_s_low).Real(growth.bytes_per_s_high)
      .Real(growth.confidence);
}

void WriteFaultSites(const render::ReportView& view, Database* database) {
  Insert row(database, "fault_sites", 11);
  uint64_t id = 0;
  for (const FaultSite& site : view.analysis().fault_details.sites) {
    if (!view.Matches(site.stack)) continue;
    row.Number(++id).NumberOrNull(site.stack.value).Text(render::FunctionName(site.function))
        .Number(site.faults.minor).Number(site.faults.major).Number(site.by_allocator)
        .Number(site.blocks).Number(site.first_time_ns).Number(site.last_time_ns);
    if (site.touchers.empty()) {
      row.Null().Null();
    } else {
      const FaultToucher& most = site.touchers.front();
      row.Text(render::TouchedBy(view, most)).Number(most.faults.all());
    }
    row.Row();
  }
}

}  // namespace memtrace::report::sqlite
