# Headers that nearly every file includes are compiled once: most of a build's time was spent
# reading them, a thousand times over. A file still names what it includes, so that it compiles
# without this too (-DMEMTRACE_PRECOMPILED_HEADERS=OFF).
option(MEMTRACE_PRECOMPILED_HEADERS "Compile the headers that all include only once" ON)

set(MEMTRACE_STANDARD_HEADERS <algorithm> <array> <cstdint> <cstring> <functional> <map> <memory>
  <optional> <set> <span> <string> <utility> <vector>)
set(MEMTRACE_REPORT_HEADERS ${MEMTRACE_STANDARD_HEADERS} <absl/container/flat_hash_map.h>
  <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h>)
set(MEMTRACE_HOT_HEADERS ${MEMTRACE_REPORT_HEADERS})
set(MEMTRACE_JSON_HEADERS ${MEMTRACE_REPORT_HEADERS} <nlohmann/json.hpp>)
set(MEMTRACE_TEST_HEADERS ${MEMTRACE_STANDARD_HEADERS} <chrono> <filesystem> <fstream> <random>
  <regex> <sstream> <thread> <gmock/gmock.h> <gtest/gtest.h>
  <nlohmann/json.hpp>)
set(MEMTRACE_OPTIMIZED_TEST_HEADERS ${MEMTRACE_TEST_HEADERS})

# memtrace_common_headers(TARGET HOT|REPORT|JSON|TEST|OPTIMIZED_TEST)
# The first target of a kind makes them, the others must be compiled with the same options.
function(memtrace_common_headers target kind)
  if(NOT MEMTRACE_PRECOMPILED_HEADERS)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY MEMTRACE_${kind}_HEADERS_OWNER)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${MEMTRACE_${kind}_HEADERS})
    set_property(GLOBAL PROPERTY MEMTRACE_${kind}_HEADERS_OWNER ${target})
  endif()
endfunction()
