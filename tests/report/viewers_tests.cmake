# Tests of report/viewers/.
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME report_viewers_test SOURCES reloads_test.cc viewers_test.cc
  LIBS memtrace_viewers memtrace_render memtrace_trace_builder nlohmann_json::nlohmann_json LABELS unit)
