# Tests of report/viewers/.
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME report_viewers_test SOURCES viewers_test.cc
  LIBS memtrace_viewers memtrace_render nlohmann_json::nlohmann_json LABELS unit)
