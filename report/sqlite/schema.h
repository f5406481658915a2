// The tables of --format sqlite. What is only ever added: tables, columns at the end, views.

#ifndef MEMTRACE_REPORT_SQLITE_SCHEMA_H_
#define MEMTRACE_REPORT_SQLITE_SCHEMA_H_

namespace memtrace::report::sqlite {

inline constexpr char kSchemaName[] = "memtrace-sqlite/1";

extern const char kTables[];
// After the rows are there: cheaper than to keep them up to date.
extern const char kIndices[];
extern const char kViews[];

}  // namespace memtrace::report::sqlite

#endif  // MEMTRACE_REPORT_SQLITE_SCHEMA_H_
