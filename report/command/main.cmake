# The memtrace executable: main.cc and the commands.
find_package(CLI11 REQUIRED)

# What of the commands is tested by itself.
add_library(memtrace_command STATIC command/command_pack.cc command/dump.cc command/info.cc command/info_stacks.cc)
target_link_libraries(memtrace_command PUBLIC memtrace_cli PRIVATE memtrace_warnings memtrace_sanitizers)
memtrace_common_headers(memtrace_command REPORT)

add_executable(memtrace command/main.cc command/add_report_options.cc command/command_dump.cc command/command_info.cc command/large_blocks.cc
  command/command_leaks.cc command/command_report.cc command/heap_questions.cc command/leak_signal.cc command/process_status.cc command/running_trace.cc
  valgrind/command_compare.cc valgrind/driver.cc valgrind/driver_children.cc valgrind/driver_suppressions.cc
  valgrind/named_trace.cc
  gate/check_options.cc gate/check_session.cc gate/command_check.cc gate/evidence.cc gate/generated_suppressions.cc)
add_executable(memtrace::memtrace ALIAS memtrace)  # as find_package(memtrace) calls it
target_compile_definitions(memtrace PRIVATE MEMTRACE_VERSION="${PROJECT_VERSION}")
target_link_libraries(memtrace PRIVATE memtrace_command memtrace_pages memtrace_gate memtrace_trend memtrace_diff memtrace_tree memtrace_valgrind memtrace_index memtrace_cli memtrace_run
  CLI11::CLI11 memtrace_warnings memtrace_sanitizers)
target_link_libraries(memtrace PRIVATE memtrace_viewers memtrace_sqlite memtrace_import memtrace_rings)
memtrace_common_headers(memtrace JSON)
install(TARGETS memtrace RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")

# The same executable under the name of the driver that stands in for Valgrind.
add_custom_command(TARGET memtrace POST_BUILD
  COMMAND "${CMAKE_COMMAND}" -E create_symlink memtrace
    "$<TARGET_FILE_DIR:memtrace>/memtrace-valgrind")
# PROGRAMS: the permissions reach the file behind the link.
install(PROGRAMS "$<TARGET_FILE_DIR:memtrace>/memtrace-valgrind"
  DESTINATION "${CMAKE_INSTALL_BINDIR}")
