// Records for the trace's file, which go there at once, as a metadata block of their own.

#ifndef MEMTRACE_PRELOAD_APPEND_RECORDS_H_
#define MEMTRACE_PRELOAD_APPEND_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "format/record_encoder.h"
#include "format/trace_format.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/trace_file.h"

namespace memtrace {

// Appends records as one metadata block. `build` gets a RecordEncoder.
template <size_t kCapacity, typename Build>
bool AppendRecords(Build build, TraceFile::Keep keep = TraceFile::Keep::kForEver) {
  uint8_t buffer[kCapacity];
  format::RecordEncoder encoder(buffer, kCapacity);
  build(encoder);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder.size());
  return g_process.file.Append(header, buffer, keep) && !encoder.overflowed();
}

// The same with a buffer mapped for the purpose: long paths, memory maps.
template <typename Build>
bool AppendBigRecords(size_t capacity, Build build,
                      TraceFile::Keep keep = TraceFile::Keep::kForEver) {
  const OwnFaultsScope faults;
  auto* buffer = static_cast<uint8_t*>(OwnMap(capacity, /*touch=*/false));
  if (buffer == nullptr) return false;
  format::RecordEncoder encoder(buffer, capacity);
  build(encoder);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder.size());
  const bool written = g_process.file.Append(header, buffer, keep) && !encoder.overflowed();
  OwnUnmap(buffer, capacity);
  return written;
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_APPEND_RECORDS_H_
