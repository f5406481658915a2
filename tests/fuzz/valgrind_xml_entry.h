// The one way into what reads Valgrind's XML, for bytes from anybody: the fuzzer's and the
// replay test's.

#ifndef MEMTRACE_TESTS_FUZZ_VALGRIND_XML_ENTRY_H_
#define MEMTRACE_TESTS_FUZZ_VALGRIND_XML_ENTRY_H_

#include <cstddef>
#include <cstdint>

namespace memtrace::report {

// Reads it, compares it with itself and with half of itself, and prints both formats.
// Aborts where a file is not as large as itself. True: it could be read.
bool FuzzValgrindXml(const uint8_t* data, size_t size);

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_FUZZ_VALGRIND_XML_ENTRY_H_
