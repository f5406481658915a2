# What an installation consists of, and the Debian package that cpack makes.
#
#   bin/memtrace                    finds the library at ../lib, as in the build tree
#   lib/libmemtrace.so              to be preloaded; nothing links with it
#   lib/cmake/memtrace/             find_package(memtrace)
#   include/memtrace.h              for programs that tell it something
#   share/man/, share/doc/memtrace/, completions of three shells
include(CMakePackageConfigHelpers)

# --- find_package(memtrace) -----------------------------------------------------
set(MEMTRACE_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/memtrace")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/memtraceConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/cmake/memtraceConfig.cmake"
  INSTALL_DESTINATION "${MEMTRACE_CMAKE_DIR}"
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/cmake/memtraceConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/cmake/memtraceConfig.cmake"
  "${PROJECT_BINARY_DIR}/cmake/memtraceConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/MemtraceLeakTest.cmake"
  DESTINATION "${MEMTRACE_CMAKE_DIR}")

install(FILES "${PROJECT_SOURCE_DIR}/include/memtrace.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

# --- documents and completions ----------------------------------------------------
file(GLOB MEMTRACE_MAN1 "${PROJECT_SOURCE_DIR}/docs/man/*.1")
file(GLOB MEMTRACE_MAN7 "${PROJECT_SOURCE_DIR}/docs/man/*.7")
install(FILES ${MEMTRACE_MAN1} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/memtrace.h.3"
  DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
install(FILES ${MEMTRACE_MAN7} DESTINATION "${CMAKE_INSTALL_MANDIR}/man7")
# README.md refers to the documents as it does in the sources, and they to each other. What is not
# installed, as the examples, and manual pages, which are elsewhere, they name without a link.
file(GLOB MEMTRACE_DOCUMENTS "${PROJECT_SOURCE_DIR}/docs/*.md")
install(FILES ${MEMTRACE_DOCUMENTS} DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/completions/memtrace.bash"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME memtrace)
install(FILES "${PROJECT_SOURCE_DIR}/completions/memtrace-valgrind.bash"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME memtrace-valgrind)
install(FILES "${PROJECT_SOURCE_DIR}/completions/_memtrace"
  "${PROJECT_SOURCE_DIR}/completions/_memtrace-valgrind"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${PROJECT_SOURCE_DIR}/completions/memtrace.fish"
  "${PROJECT_SOURCE_DIR}/completions/memtrace-valgrind.fish"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")

# --- cpack ------------------------------------------------------------------------
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME memtrace)
set(CPACK_PACKAGE_VENDOR "memtrace")
set(CPACK_PACKAGE_CONTACT "memtrace developers <maintainers@memtrace.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "records every heap allocation of a program with its stack")
set(CPACK_PACKAGE_DESCRIPTION
"memtrace preloads a library into an unmodified program, which records every
allocation with its exact call stack in a file; the memtrace program reports
from that file which call sites leak, how the heap grew, what was live at the
peak, and which sites own the page faults.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# /usr/lib is searched by the loader, so LD_PRELOAD=libmemtrace.so works by name.
file(WRITE "${PROJECT_BINARY_DIR}/cmake/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/cmake/triggers")
# What Debian wants elsewhere or otherwise than `cmake --install` puts it.
configure_file("${PROJECT_SOURCE_DIR}/cmake/DebianLayout.cmake.in"
  "${PROJECT_BINARY_DIR}/cmake/DebianLayout.cmake" @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_BINARY_DIR}/cmake/DebianLayout.cmake")
include(CPack)
