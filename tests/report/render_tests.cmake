# Tests of report/render/, site_symbols and options, and of `memtrace report`.
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME report_render_test
  SOURCES fingerprint_test.cc render_csv_test.cc render_escape_test.cc render_filter_test.cc render_json_test.cc render_leaks_test.cc
          render_mismatches_test.cc
          render_mtrace_test.cc render_options_test.cc render_output_test.cc render_plot_test.cc sampling_test.cc
          render_series_test.cc render_sites_test.cc render_stack_walk_test.cc render_symbols_test.cc render_text_test.cc render_units_test.cc
  LIBS memtrace_render nlohmann_json::nlohmann_json
  LABELS unit)
memtrace_test(NAME html_test
  SOURCES html_test.cc
  LIBS memtrace_render memtrace_html nlohmann_json::nlohmann_json
  LABELS unit)
memtrace_test(NAME report_command_test
  SOURCES render_command_test.cc
  LIBS memtrace_trace_builder nlohmann_json::nlohmann_json memtrace_render
  LABELS unit TIMEOUT 300)
add_dependencies(report_command_test memtrace)
add_library(stalled_read MODULE stalled_read.c)
set_target_properties(stalled_read PROPERTIES C_STANDARD 11
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_link_libraries(stalled_read PRIVATE memtrace_warnings)
memtrace_test(NAME engine_command_test
  SOURCES engine_command_test.cc
  LIBS memtrace_long_trace nlohmann_json::nlohmann_json util)
add_dependencies(engine_command_test memtrace stalled_read)
# What an event costs, in instructions.
memtrace_test(NAME reader_instructions_test SOURCES reader_instructions_test.cc
  LIBS memtrace_long_trace memtrace_trace_builder)
add_dependencies(reader_instructions_test memtrace)
