# Tests of report/sqlite/.
find_package(SQLite3 QUIET)
if(SQLite3_FOUND)
  memtrace_test(NAME report_sqlite_test SOURCES sqlite_test.cc
    LIBS memtrace_sqlite memtrace_render SQLite::SQLite3 LABELS unit)
endif()
