# Tests of report/import/.
memtrace_test(NAME report_import_test SOURCES import_test.cc
  LIBS memtrace_import memtrace_render memtrace_symbolizer LABELS unit)
