// --format sqlite: everything that a report knows, in tables. docs/sql.md documents them and
// has queries for the usual questions.
//
// One thread.

#ifndef MEMTRACE_REPORT_SQLITE_SQLITE_REPORT_H_
#define MEMTRACE_REPORT_SQLITE_SQLITE_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "report/render/view.h"

namespace memtrace::report::sqlite {

// Whether this memtrace was built with SQLite.
bool HasSqlite();

// InvalidArgument or Unimplemented where no database can be written to `path`, before
// anything is read.
absl::Status CheckSqliteOutput(const std::string& path);

// A database at `path`, whole or not at all. Of live blocks it has what Analysis::live has.
absl::Status WriteSqlite(const render::ReportView& view, const std::string& path);

}  // namespace memtrace::report::sqlite

#endif  // MEMTRACE_REPORT_SQLITE_SQLITE_REPORT_H_
