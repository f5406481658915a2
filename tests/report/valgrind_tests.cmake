# Tests of report/valgrind/ and of the formats that Valgrind's readers take.
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME report_valgrind_test
  SOURCES valgrind_compare_test.cc valgrind_driver_test.cc valgrind_profiles_test.cc
          valgrind_report_test.cc valgrind_run_test.cc
  LIBS memtrace_valgrind memtrace_render nlohmann_json::nlohmann_json
  LABELS unit)
