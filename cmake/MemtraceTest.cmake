# memtrace_test_code(TARGET [OPTIMIZED]): the code of tests, half of a build. What they test is optimized
# as users get it; they are not, but for those that compute for long. UBSan is for what is tested too: in
# the tests' own files its checks, nearly all of them of GoogleTest and JSON templates, and the
# optimizer took three quarters of the time.
function(memtrace_test_code target)
  set(level -O0)
  if("OPTIMIZED" IN_LIST ARGN)
    set(level -O1)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>
    $<$<BOOL:${MEMTRACE_SANITIZE}>:-O0>)
  set_target_properties(${target} PROPERTIES MEMTRACE_CHECKS none)
endfunction()

# Those that take longest, with sanitizers or without. CTest begins with them: in a new directory, where it
# knows nothing of earlier runs, it would take the tests as they were declared, and wait for a long one at the end.
set(MEMTRACE_LONGEST_TESTS report_test report_command_test fuzz_replay_test real_programs_test faults_test hazards_test
  engine_test soak_test engine_command_test viewers_test bad_traces_test leak_corpus_test preload_test
  growth_test instruction_count_test leak_graph_test kill_test hostile_traces_test cross_check_test)

# memtrace_test(NAME name SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT s] [SERIAL] [OPTIMIZED] [OWN_FLAGS])
# A GoogleTest program that CTest runs as one test. OPTIMIZED: its own code computes for long. OWN_FLAGS:
# it is compiled with flags that its code depends on, and without the headers that were compiled without
# them. Its directory of tests/ is one of its labels: ctest -L report.
function(memtrace_test)
  cmake_parse_arguments(T "SERIAL;OPTIMIZED;OWN_FLAGS" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${T_NAME} ${T_SOURCES})
  # Several files at once: what GoogleTest's headers cost, most of it templates that every file makes
  # again, is paid once for them.
  set_target_properties(${T_NAME} PROPERTIES UNITY_BUILD ON
    CXX_COMPILER_LAUNCHER "${MEMTRACE_COMPILER_LAUNCHER}"
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(${T_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} memtrace_warnings memtrace_sanitizers
    GTest::gmock GTest::gtest_main)
  target_compile_definitions(${T_NAME} PRIVATE
    MEMTRACE_BUILD_DIR="${PROJECT_BINARY_DIR}" MEMTRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(T_OPTIMIZED OR T_OWN_FLAGS)
    memtrace_test_code(${T_NAME} OPTIMIZED)
  else()
    memtrace_test_code(${T_NAME})
  endif()
  if(T_OPTIMIZED AND NOT MEMTRACE_SANITIZE)  # with sanitizers they are all of one level
    memtrace_common_headers(${T_NAME} OPTIMIZED_TEST)
  elseif(NOT T_OWN_FLAGS)
    memtrace_common_headers(${T_NAME} TEST)
  endif()
  add_test(NAME ${T_NAME} COMMAND ${T_NAME})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(MEMTRACE_SANITIZE)  # how slow the machine is must not decide
    math(EXPR T_TIMEOUT "4 * ${T_TIMEOUT}")
  endif()
  file(RELATIVE_PATH directory "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "/.*" "" directory "${directory}")
  set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${T_TIMEOUT}
    LABELS "${directory};${T_LABELS}")
  list(FIND MEMTRACE_LONGEST_TESTS ${T_NAME} rank)
  if(NOT rank EQUAL -1)
    math(EXPR cost "1000 - ${rank}")
    set_tests_properties(${T_NAME} PROPERTIES COST ${cost})
  endif()
  # Nothing is written into the home of whoever runs the tests.
  set_property(TEST ${T_NAME} APPEND PROPERTY ENVIRONMENT
    "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/tests/cache")
  if(T_SERIAL)
    set_tests_properties(${T_NAME} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

# memtrace_long_test(NAME name OF test TIMEOUT s): those tests of the program `test` that are called DISABLED_,
# which take minutes or more, as a test of CTest's own with the label `long`.
function(memtrace_long_test)
  cmake_parse_arguments(T "" "NAME;OF;TIMEOUT" "" ${ARGN})
  add_test(NAME ${T_NAME} COMMAND ${T_OF} --gtest_also_run_disabled_tests --gtest_filter=*DISABLED_*)
  set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS long)
endfunction()
