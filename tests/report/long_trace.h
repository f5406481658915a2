// LongTrace: a packed trace of as many events as wanted, written block by block as they are made
// up, so that neither its maker nor its file is bound by memory: what a reader of a billion events
// is tried on.
//
// The program in it behaves as programs do: stacks of 12 frames, most blocks freed soon and some
// never before the end, sizes that go with the site, an allocator that gives out the
// latest free block of a size. Each thread has its own heap; a part of the frees is another thread's,
// with the stamp that the library would take there.
//
// The same options make the same file.

#ifndef MEMTRACE_TESTS_REPORT_LONG_TRACE_H_
#define MEMTRACE_TESTS_REPORT_LONG_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace memtrace::report {

struct LongTraceOptions {
  uint64_t events = 1'000'000;  // allocations and frees
  uint32_t threads = 1;
  uint64_t live_blocks = 100'000;  // that it holds most of the time, all threads
  uint32_t sites = 2000;
  int level = 3;  // of zstd
};

// What is in it.
struct LongTraceFacts {
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0, live_blocks = 0, live_bytes = 0;
  uint64_t peak_live_bytes = 0;
  uint64_t file_bytes = 0;
};

// Errors: of writing.
absl::Status WriteLongTrace(const std::string& path, const LongTraceOptions& options,
                            LongTraceFacts* facts);

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_LONG_TRACE_H_
