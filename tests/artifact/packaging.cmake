# Installation, package, manual pages, completions. Run the installed or built
# program; need cmake, cpack, groff, man, the three shells (scripts/packages).
memtrace_test(NAME packaging_documents_test SOURCES packaging_documents_test.cc)
memtrace_test(NAME packaging_install_test SOURCES packaging_install_test.cc)
memtrace_test(NAME packaging_leak_test_test SOURCES packaging_leak_test_test.cc TIMEOUT 300)
memtrace_test(NAME packaging_deb_test SOURCES packaging_deb_test.cc)
target_compile_definitions(packaging_install_test PRIVATE
  MEMTRACE_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
target_compile_definitions(packaging_deb_test PRIVATE
  MEMTRACE_VERSION_STRING="${PROJECT_VERSION}")
foreach(test IN ITEMS packaging_documents_test packaging_install_test packaging_deb_test
    packaging_leak_test_test)
  add_dependencies(${test} memtrace memtrace_preload)
endforeach()
add_dependencies(packaging_documents_test example_leaks)
