# What every target is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# -O2 for what prints, which is most of the files; memtrace_hot() for the rest. Where the presets let
# sanitizers look on it is -O0 and -O1: their checks more than double the optimizer's work, and what prints runs
# for a moment.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
function(memtrace_hot target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O3>
    $<$<AND:$<BOOL:${MEMTRACE_SANITIZE}>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()
# bin/ and lib/ of the build tree are laid out like those of an installation.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

add_library(memtrace_warnings INTERFACE)
# -Wno-restrict: GCC 12 warns of "literal" + std::string at -O3 (GCC bug 105651).
# clang is for sanitizers and the fuzzer: users get what GCC makes, with its attributes and weak names.
target_compile_options(memtrace_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-attributes -Wno-tautological-pointer-compare>
  $<$<BOOL:${MEMTRACE_WERROR}>:-Werror>)

# What a sanitizer finds ends the program, so that a test fails by it. Targets whose property
# MEMTRACE_CHECKS is `none` have nothing of UBSan, nor what guides the fuzzer: it drives code that has it.
add_library(memtrace_sanitizers INTERFACE)
if(MEMTRACE_SANITIZE)
  list(JOIN MEMTRACE_SANITIZE "," MEMTRACE_SANITIZE_FLAGS)
  target_compile_options(memtrace_sanitizers INTERFACE -fsanitize=${MEMTRACE_SANITIZE_FLAGS}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(unchecked $<STREQUAL:$<TARGET_PROPERTY:MEMTRACE_CHECKS>,none>)
  if("undefined" IN_LIST MEMTRACE_SANITIZE)
    target_compile_options(memtrace_sanitizers INTERFACE
      $<${unchecked}:-fno-sanitize=undefined,float-cast-overflow>)
  endif()
  if(MEMTRACE_FUZZ)
    target_compile_options(memtrace_sanitizers INTERFACE
      $<$<NOT:${unchecked}>:-fsanitize=fuzzer-no-link>)
  endif()
  # GCC says so itself.
  foreach(sanitizer IN ITEMS address thread)
    if(sanitizer IN_LIST MEMTRACE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      string(TOUPPER "__SANITIZE_${sanitizer}__" macro)
      target_compile_definitions(memtrace_sanitizers INTERFACE ${macro})
    endif()
  endforeach()
  target_link_options(memtrace_sanitizers INTERFACE -fsanitize=${MEMTRACE_SANITIZE_FLAGS}
    $<$<CXX_COMPILER_ID:Clang>:-fuse-ld=lld>)
endif()
