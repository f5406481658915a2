# memtrace_add_leak_test: a test that also fails when the program leaks.
#
#   memtrace_add_leak_test(NAME cache_test COMMAND cache_test --quick)
#
#   memtrace_add_leak_test(
#     NAME name
#     COMMAND program argument...       a target's name stands for its file, before and behind
#                                       its add_executable
#     [BASELINE file]                   leaks that are known: only new and grown ones fail. It is
#                                       made by: MEMTRACE_UPDATE_BASELINE=1 ctest -L leak
#     [SUPPRESSIONS file...]            Valgrind's or LeakSanitizer's, as they are
#     [FAIL_ON kind...]                 definite (the default) indirect possible reachable unfreed
#                                       all none
#     [MAX_LEAKED size] [MAX_PEAK size] [MAX_ALLOCATIONS count]
#     [OPTIONS option...]               other options of `memtrace check`
#     [WORKING_DIRECTORY directory]
#     [ENVIRONMENT name=value...]
#     [LABELS label...]                 `leak` is always one
#     [TIMEOUT seconds])
#
# The program runs under `memtrace check --run`: its output is its own, and so is its exit
# status when that is not 0. When it is 0, the test fails with 1 for a leak that is not accepted,
# and with 2 when the trace is no evidence; the log says what, with stacks. Each test leaves
# a JUnit report in MEMTRACE_JUNIT_DIRECTORY (by default memtrace-junit/; relative to the build
# tree), as NAME.xml. Other file names are relative to the source directory, as those of
# add_executable are.

# `word` as a bracket argument of CMake's, behind a space, is appended to the variable `to`.
function(_memtrace_append_quoted to word)
  # Nothing in the word may end it. The newline is no part of it, and keeps one of the word's own.
  set(equals "=")
  string(FIND "${word}]" "]${equals}]" at)
  while(NOT at EQUAL -1)
    string(APPEND equals "=")
    string(FIND "${word}]" "]${equals}]" at)
  endwhile()
  set(${to} "${${to}} [${equals}[\n${word}]${equals}]" PARENT_SCOPE)
endfunction()

# The words of the list variable `words`, as set_tests_properties would be given them: a word
# "A=1;B=2" is two elements there, and cmake_parse_arguments has made one of it.
function(_memtrace_joined to words)
  set(joined "")
  set(separator "")
  foreach(word IN LISTS ${words})
    string(APPEND joined "${separator}${word}")
    set(separator ";")
  endforeach()
  set(${to} "${joined}" PARENT_SCOPE)
endfunction()

function(memtrace_add_leak_test)
  set(one NAME BASELINE MAX_LEAKED MAX_PEAK MAX_ALLOCATIONS WORKING_DIRECTORY TIMEOUT)
  set(many COMMAND SUPPRESSIONS FAIL_ON OPTIONS ENVIRONMENT LABELS)
  cmake_parse_arguments(PARSE_ARGV 0 T "" "${one}" "${many}")
  if(T_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "memtrace_add_leak_test: unknown argument ${T_UNPARSED_ARGUMENTS}")
  endif()
  if(T_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "memtrace_add_leak_test: no value for ${T_KEYWORDS_MISSING_VALUES}")
  endif()
  # "n" and "off" are names as well as others.
  if("${T_NAME}" STREQUAL "" OR "${T_COMMAND}" STREQUAL "")
    message(FATAL_ERROR "memtrace_add_leak_test: needs NAME and COMMAND")
  endif()
  if(NOT MEMTRACE_JUNIT_DIRECTORY)
    set(MEMTRACE_JUNIT_DIRECTORY memtrace-junit)
  endif()
  get_filename_component(reports "${MEMTRACE_JUNIT_DIRECTORY}" ABSOLUTE
    BASE_DIR "${CMAKE_BINARY_DIR}")
  file(MAKE_DIRECTORY "${reports}")
  # Two tests have two files, whatever their names have in them.
  string(REGEX REPLACE "[^A-Za-z0-9._+-]" "_" junit "${T_NAME}")
  if(NOT "${junit}" STREQUAL "${T_NAME}")
    string(MD5 hash "${T_NAME}")
    string(SUBSTRING "${hash}" 0 8 hash)
    string(APPEND junit "-${hash}")
  endif()
  set(junit "${reports}/${junit}.xml")

  set(check --run --output "junit=${junit}")
  if(T_BASELINE)
    get_filename_component(file "${T_BASELINE}" ABSOLUTE)
    list(APPEND check --baseline "${file}")
  endif()
  foreach(suppressions IN LISTS T_SUPPRESSIONS)
    get_filename_component(file "${suppressions}" ABSOLUTE)
    list(APPEND check --suppressions "${file}")
  endforeach()
  if(T_FAIL_ON)
    list(JOIN T_FAIL_ON "," kinds)
    list(APPEND check --fail-on "${kinds}")
  endif()
  foreach(limit IN ITEMS LEAKED PEAK ALLOCATIONS)
    if(DEFINED T_MAX_${limit})
      string(TOLOWER "--max-${limit}" option)
      list(APPEND check ${option} "${T_MAX_${limit}}")
    endif()
  endforeach()

  # The command word by word, as add_test takes it: a list would lose empty words, and part those that
  # have a semicolon.
  set(words "")
  set(of_command FALSE)
  math(EXPR last "${ARGC} - 1")
  foreach(i RANGE ${last})
    set(word "${ARGV${i}}")
    if(word IN_LIST one OR word IN_LIST many)
      string(COMPARE EQUAL "${word}" COMMAND of_command)
    elseif(of_command)
      if(words STREQUAL "" AND word MATCHES "^[A-Za-z0-9_.:+-]+$")
        # Whether that is a target of add_executable is known when all of the project has been read.
        # What stands behind a condition that does not hold is not evaluated.
        set(exists "$<TARGET_EXISTS:${word}>")
        set(runs "$<STREQUAL:$<TARGET_PROPERTY:${word},TYPE>,EXECUTABLE>")
        set(of_target "$<${runs}:$<TARGET_FILE:${word}>>$<$<NOT:${runs}>:${word}>")
        set(word "$<${exists}:${of_target}>$<$<NOT:${exists}>:${word}>")
      endif()
      _memtrace_append_quoted(words "${word}")
    endif()
  endforeach()
  set(options "")
  foreach(word IN LISTS check T_OPTIONS)
    _memtrace_append_quoted(options "${word}")
  endforeach()
  set(directory "")
  if(T_WORKING_DIRECTORY)
    set(directory "WORKING_DIRECTORY")
    _memtrace_append_quoted(directory "${T_WORKING_DIRECTORY}")
  endif()
  set(name "")
  _memtrace_append_quoted(name "${T_NAME}")
  cmake_language(EVAL CODE
    "add_test(NAME ${name} ${directory} COMMAND memtrace::memtrace check ${options} -- ${words})")
  _memtrace_joined(labels T_LABELS)
  set_tests_properties("${T_NAME}" PROPERTIES LABELS "leak;${labels}")
  if(T_ENVIRONMENT)
    _memtrace_joined(environment T_ENVIRONMENT)
    set_tests_properties("${T_NAME}" PROPERTIES ENVIRONMENT "${environment}")
  endif()
  if(T_TIMEOUT)
    set_tests_properties("${T_NAME}" PROPERTIES TIMEOUT "${T_TIMEOUT}")
  endif()
endfunction()
