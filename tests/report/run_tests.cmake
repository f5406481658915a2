# Tests of report/run: what it finds out about programs, how it follows traces,
# and the command as a whole.

# Programs to be judged: built in the ways that matter, run only where they can be traced.
function(run_test_program name)
  cmake_parse_arguments(P "" "" "OPTIONS;LINK" ${ARGN})
  add_executable(${name} run_tracee.cc)
  target_compile_options(${name} PRIVATE ${P_OPTIONS})
  target_link_options(${name} PRIVATE ${P_OPTIONS} ${P_LINK})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/run")
endfunction()
set(static_libasan -static-libasan)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(static_libasan -static-libsan)
endif()
run_test_program(run_dynamic)
run_test_program(run_static LINK -static)
run_test_program(run_static_pie OPTIONS -fPIE LINK -static-pie)
run_test_program(run_asan OPTIONS -fsanitize=address)
run_test_program(run_static_asan OPTIONS -fsanitize=address LINK ${static_libasan})
run_test_program(run_stripped_asan OPTIONS -fsanitize=address LINK ${static_libasan} -s)
run_test_program(run_tsan OPTIONS -fsanitize=thread)
add_library(run_nothing SHARED run_nothing.c)  # a library that traces nothing
set_target_properties(run_nothing PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/run")
set(run_definitions
  RUN_DYNAMIC_PROGRAM="$<TARGET_FILE:run_dynamic>"
  RUN_STATIC_PROGRAM="$<TARGET_FILE:run_static>"
  RUN_STATIC_PIE_PROGRAM="$<TARGET_FILE:run_static_pie>"
  RUN_ASAN_PROGRAM="$<TARGET_FILE:run_asan>"
  RUN_STATIC_ASAN_PROGRAM="$<TARGET_FILE:run_static_asan>"
  RUN_STRIPPED_ASAN_PROGRAM="$<TARGET_FILE:run_stripped_asan>"
  RUN_TSAN_PROGRAM="$<TARGET_FILE:run_tsan>"
  RUN_SHARED_LIBRARY="$<TARGET_FILE:run_nothing>")

memtrace_test(NAME run_launch_test SOURCES run_launch_test.cc LIBS memtrace_run)
target_compile_definitions(run_launch_test PRIVATE ${run_definitions})
add_dependencies(run_launch_test run_dynamic run_static run_static_pie run_asan run_static_asan
  run_stripped_asan run_tsan run_nothing)

memtrace_test(NAME run_follower_test SOURCES run_follower_test.cc run_spool_test.cc
  LIBS memtrace_run)
memtrace_test(NAME running_copy_test SOURCES running_copy_test.cc LIBS memtrace_run)

foreach(test IN ITEMS run_command_test run_process_test run_terminal_test)
  memtrace_test(NAME ${test} SOURCES ${test}.cc LIBS memtrace_run LABELS e2e)
  target_compile_definitions(${test} PRIVATE ${run_definitions}
    RUN_MEMTRACE="$<TARGET_FILE:memtrace>")
  add_dependencies(${test} memtrace memtrace_preload run_dynamic run_static run_asan run_tsan
    run_nothing)
endforeach()
target_link_libraries(run_process_test PRIVATE util)
target_link_libraries(run_terminal_test PRIVATE util)

# What `memtrace run` sees from outside, on recorded kernel files and on this machine's.
memtrace_test(NAME pressure_test SOURCES pressure_test.cc LIBS memtrace_run)
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME run_pressure_test SOURCES run_pressure_test.cc
  LIBS memtrace_run nlohmann_json::nlohmann_json LABELS e2e)
target_compile_definitions(run_pressure_test PRIVATE ${run_definitions}
  RUN_MEMTRACE="$<TARGET_FILE:memtrace>")
add_dependencies(run_pressure_test memtrace memtrace_preload run_dynamic)
