# Tests of report/diff/ and report/trend/, and of the commands.
memtrace_test(NAME report_diff_test SOURCES diff_test.cc
  LIBS memtrace_diff nlohmann_json::nlohmann_json LABELS unit)
memtrace_test(NAME report_trend_test SOURCES trend_test.cc
  LIBS memtrace_trend nlohmann_json::nlohmann_json LABELS unit)
memtrace_test(NAME report_nightly_command_test SOURCES nightly_command_test.cc
  LIBS memtrace_trace_builder memtrace_report_core LABELS unit)
add_dependencies(report_nightly_command_test memtrace)
