// The checksum of the trace file: XXH3, 64 bits, seed 0. Inlined, so that the
// preload library needs no library for it.

#ifndef MEMTRACE_FORMAT_CHECKSUM_H_
#define MEMTRACE_FORMAT_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "format/trace_format.h"

namespace memtrace::format {

inline uint64_t Checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

inline uint64_t HeaderChecksum(const FileHeader& header) {
  return Checksum(&header, offsetof(FileHeader, header_checksum));
}
inline uint64_t HeaderChecksum(const BlockHeader& header) {
  return Checksum(&header, offsetof(BlockHeader, header_checksum));
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_CHECKSUM_H_
