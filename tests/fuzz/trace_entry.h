// The one way into everything that reads a trace, for bytes from anybody: what the
// fuzzer calls with its inputs and the replay test with the corpus.
//
// Nothing is checked here but what must hold of every input: no crash, no report of
// a sanitizer, no endless loop, memory in proportion to the input; and what the
// packer writes, the reader opens.

#ifndef MEMTRACE_TESTS_FUZZ_TRACE_ENTRY_H_
#define MEMTRACE_TESTS_FUZZ_TRACE_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace memtrace::report {

inline constexpr size_t kMaxFuzzBytes = 1 << 20;

// Makes magic numbers' checksums right: of the file header, of every block header
// that can be found, of the payloads that are whole. Otherwise a changed byte would
// never get further than the comparison of a checksum.
void RepairChecksums(std::span<uint8_t> trace);

// False: an input that asks for more decompressed bytes than is interesting here
// (64 MiB in all); the reader would stand it, the fuzzer's time would not.
bool IsModest(std::span<const uint8_t> trace);

// Opens, dumps, analyzes (whole, and a part of it), prints the facts and every format of
// the report, packs and reads what was packed. Aborts where a text is more than text. Returns the number of bytes printed, so that nothing is left out.
size_t ReadEverything(std::string_view trace);

// The whole of it. An input with a bit set in the last reserved byte of its file header
// is taken as it is, without repair: damage must be found as well.
void FuzzTrace(const uint8_t* data, size_t size);

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_FUZZ_TRACE_ENTRY_H_
