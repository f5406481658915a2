// Records for the trace's file, which go there at once, as a metadata block of their own.

#ifndef MEMTRACE_PRELOAD_APPEND_RECORDS_H_
#define MEMTRACE_PRELOAD_APPEND_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "format/record_encoder.h"
#include "preload/kept_records.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/trace_file.h"

namespace memtrace {

// Builds records in a buffer, for `append`. Both get the RecordEncoder. False: `append` says so, or
// there was no room for all of them.
template <size_t kCapacity, typename Build, typename Append>
bool BuildRecords(Build build, Append append) {
  uint8_t buffer[kCapacity];
  format::RecordEncoder encoder(buffer, kCapacity);
  build(encoder);
  return append(encoder) && !encoder.overflowed();
}

// The same with a buffer mapped for the purpose: long paths, memory maps.
template <typename Build, typename Append>
bool BuildBigRecords(size_t capacity, Build build, Append append) {
  const OwnFaultsScope faults;
  auto* buffer = static_cast<uint8_t*>(OwnMap(capacity, /*touch=*/false));
  if (buffer == nullptr) return false;
  format::RecordEncoder encoder(buffer, capacity);
  build(encoder);
  const bool appended = append(encoder) && !encoder.overflowed();
  OwnUnmap(buffer, capacity);
  return appended;
}

// What `append` may be: appends the records as one metadata block.
struct AppendBlock {
  TraceFile::Keep keep = TraceFile::Keep::kForEver;

  bool operator()(const format::RecordEncoder& records) const {
    return g_process.file.AppendRecords(records.data(), records.size(), keep);
  }
};

// The same, and they are written again where the trace may lose them (KeptRecords::Append()).
struct AppendKeptBlock {
  uint16_t module = 0;

  bool operator()(const format::RecordEncoder& records) const {
    g_kept_records.Append(g_process.file, records.data(), records.size(), module);
    return true;
  }
};

// The same of records that events to come do not need.
struct AppendOnceBlock {
  bool operator()(const format::RecordEncoder& records) const {
    g_kept_records.AppendOnce(g_process.file, records.data(), records.size());
    return true;
  }
};

template <size_t kCapacity, typename Build>
bool AppendRecords(Build build, TraceFile::Keep keep = TraceFile::Keep::kForEver) {
  return BuildRecords<kCapacity>(build, AppendBlock{keep});
}

template <typename Build>
bool AppendBigRecords(size_t capacity, Build build,
                      TraceFile::Keep keep = TraceFile::Keep::kForEver) {
  return BuildBigRecords(capacity, build, AppendBlock{keep});
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_APPEND_RECORDS_H_
