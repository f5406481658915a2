// ToldApart: which sites of a table read the same, and the caller that tells one from the others.
// All that is allocated by a project's own wrapper of malloc is at one line of it.
//
// Pure functions.

#ifndef MEMTRACE_REPORT_DIFF_TOLD_APART_H_
#define MEMTRACE_REPORT_DIFF_TOLD_APART_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/diff/run_summary.h"

namespace memtrace::report {

struct ToldApart {
  bool reads_as_another = false;
  // The first of RunSite::callers() that another site with the same callers before it does not have,
  // and how many that are. Empty, 0: none differs of those that are known.
  std::string called_by;
  size_t callers = 0;
};

struct SiteInTable {
  absl::string_view executable;  // as the table has it
  const RunSite* site = nullptr;
};

// Of each, in their order.
std::vector<ToldApart> TellApart(const std::vector<SiteInTable>& table);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_DIFF_TOLD_APART_H_
