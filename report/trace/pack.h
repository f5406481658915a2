// Pack: a raw trace whose process has ended -> a packed one, a fraction of its size.

#ifndef MEMTRACE_REPORT_TRACE_PACK_H_
#define MEMTRACE_REPORT_TRACE_PACK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memtrace::report {

struct PackOptions {
  std::string file;
  std::string output;  // empty: PackedName(file)
  int level = 9;       // of zstd, 1 to 19
};

struct PackResult {
  std::string output;
  uint64_t raw_bytes = 0;
  uint64_t packed_bytes = 0;
  uint64_t damaged_blocks = 0;  // left out
  bool incomplete = false;      // the raw trace was cut or damaged: the packed one says so, too
};

// x.mtr -> x.packed.mtr
std::string PackedName(const std::string& file);

// The output is there whole or not at all. A damaged block is left out, and counted.
absl::StatusOr<PackResult> RunPack(const PackOptions& options);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_PACK_H_
