// GroupingStore: the Grouping of a trace's sites on disk, beside its summary (summary_store.h).
//
// It is of a trace, of the options of the summary, and of the names that the frames had: it is
// taken if those are the same, by the checksum of SiteSymbols.
//
// One thread.

#ifndef MEMTRACE_REPORT_INDEX_GROUPING_STORE_H_
#define MEMTRACE_REPORT_INDEX_GROUPING_STORE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "report/findings/analysis.h"
#include "report/index/trace_identity.h"
#include "report/render/grouping.h"

namespace memtrace::report::index {

class GroupingStore {
 public:
  // `summary`: the file that SummaryStore has for the trace; empty: does nothing.
  GroupingStore(const std::string& summary, const TraceIdentity& identity, uint64_t names);

  std::optional<render::Grouping> Recall(const Analysis& analysis) const;
  void Keep(const render::Grouping& grouping) const;

 private:
  std::string file_;
  const TraceIdentity identity_;
  const uint64_t names_;
};

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_INDEX_GROUPING_STORE_H_
