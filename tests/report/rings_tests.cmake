# Tests of report/rings/ and symbolizer/static_footprint.
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME report_rings_test SOURCES rings_test.cc
  LIBS memtrace_rings memtrace_render memtrace_symbolizer nlohmann_json::nlohmann_json LABELS unit)
add_dependencies(report_rings_test memtrace)
