# Where ccache is installed, it keeps what the compiler made: another clone, another branch, a build from
# nothing take what they have in common with an earlier one. -DMEMTRACE_CCACHE=OFF compiles all.
#
# MEMTRACE_COMPILER_LAUNCHER, to be set as CMAKE_CXX_COMPILER_LAUNCHER, is of our own code alone. What tests
# look into by its debug information is compiled anew: it would name the directory of another clone.
option(MEMTRACE_CCACHE "Keep what was compiled with ccache, where it is installed" ON)
find_program(MEMTRACE_CCACHE_PROGRAM ccache)
mark_as_advanced(MEMTRACE_CCACHE_PROGRAM)

set(MEMTRACE_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
if(MEMTRACE_CCACHE AND MEMTRACE_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what its manual asks for headers that are compiled once. Paths below the tree are
  # taken as relative, so that they need not be the same in another clone.
  set(MEMTRACE_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${MEMTRACE_CCACHE_PROGRAM}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Compiled headers have times in them, and would refuse themselves when they come out of the cache.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()
