# What every target is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# -O2 for what prints, which is most of the files; memtrace_hot() for the rest. Where the presets let
# sanitizers and the fuzzer look on it is -O0 and -O1: their checks more than double the optimizer's
# work, and what prints runs for a moment.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
function(memtrace_hot target)
  set(checked "$<OR:$<BOOL:${MEMTRACE_SANITIZE}>,$<BOOL:${MEMTRACE_FUZZ}>>")
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O3>
    $<$<AND:$<NOT:$<CONFIG:Release>>,${checked},$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()
# bin/ and lib/ of the build tree are laid out like those of an installation.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

add_library(memtrace_warnings INTERFACE)
# -Wno-restrict: GCC 12 warns of "literal" + std::string at -O3 (GCC bug 105651).
target_compile_options(memtrace_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${MEMTRACE_WERROR}>:-Werror>)

add_library(memtrace_sanitizers INTERFACE)
if(MEMTRACE_SANITIZE)
  list(JOIN MEMTRACE_SANITIZE "," MEMTRACE_SANITIZE_FLAGS)
  target_compile_options(memtrace_sanitizers INTERFACE -fsanitize=${MEMTRACE_SANITIZE_FLAGS}
    -fno-omit-frame-pointer)
  # GCC takes 18 of 43 seconds for two of UBSan's checks, of every access there is. AddressSanitizer stops
  # at a null pointer as well; the alignment of what is read from files is looked at in the fuzz
  # build, by clang. Targets whose property MEMTRACE_CHECKS is `all` have them, those where it is
  # `none` have nothing of UBSan.
  if("undefined" IN_LIST MEMTRACE_SANITIZE)
    set(checks $<TARGET_PROPERTY:MEMTRACE_CHECKS>)
    target_compile_options(memtrace_sanitizers INTERFACE
      $<$<STREQUAL:${checks},>:-fno-sanitize=null,alignment>
      $<$<STREQUAL:${checks},none>:-fno-sanitize=undefined>)
  endif()
  target_link_options(memtrace_sanitizers INTERFACE -fsanitize=${MEMTRACE_SANITIZE_FLAGS})
endif()
# What the fuzzer drives must be instrumented for it; the targets link its main().
if(MEMTRACE_FUZZ)
  target_compile_options(memtrace_sanitizers INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow
    -fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer)
  target_link_options(memtrace_sanitizers INTERFACE
    -fsanitize=address,undefined,float-cast-overflow)
endif()
