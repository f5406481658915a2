# Tests of report/pages: the pages of processes.
# Its processes are copies of the test itself, whose map under a sanitizer is shadow memory for the most part.
if(NOT MEMTRACE_SANITIZE)
  memtrace_test(NAME pages_test SOURCES pages_test.cc LIBS memtrace_pages)

  memtrace_test(NAME pages_command_test SOURCES pages_command_test.cc
    LIBS memtrace_run nlohmann_json::nlohmann_json LABELS e2e)
  target_compile_definitions(pages_command_test PRIVATE ${run_definitions}
    RUN_MEMTRACE="$<TARGET_FILE:memtrace>")
  add_dependencies(pages_command_test memtrace)
endif()
