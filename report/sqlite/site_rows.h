// What a site did beyond what it allocated: how it grew, and the page faults on its blocks.

#ifndef MEMTRACE_REPORT_SQLITE_SITE_ROWS_H_
#define MEMTRACE_REPORT_SQLITE_SITE_ROWS_H_

#include "report/findings/growth.h"
#include "report/render/view.h"
#include "report/sqlite/database.h"

namespace memtrace::report::sqlite {

// The six last columns of `sites`.
void WriteGrowth(const Growth& growth, Insert* row);

// The table `fault_sites`; their stacks are in `stacks`.
void WriteFaultSites(const render::ReportView& view, Database* database);

}  // namespace memtrace::report::sqlite

#endif  // MEMTRACE_REPORT_SQLITE_SITE_ROWS_H_
