// ScanReader: the records of a memory scan (format/memory_scan.h), each length checked.
//
// A scan may have been cut anywhere, and its numbers may be anything: what is malformed
// ends the block it is in, and makes the scan an unfinished one.
//
// What there is much of is given to a visitor as it is read; the rest is kept in a Scan.
// Words come in the order of the file, which is not that of the addresses.

#ifndef MEMTRACE_REPORT_LEAK_SCAN_READER_H_
#define MEMTRACE_REPORT_LEAK_SCAN_READER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/memory_scan.h"
#include "format/record_decoder.h"
#include "report/leak/heuristics.h"

namespace memtrace::report {
class TraceReader;
}

namespace memtrace::report::leak {

struct ScanBegin {
  format::ScanReason reason{};
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;
  uint32_t tid = 0;      // that asked
  std::string label;
  format::ScanShow show{};
  uint64_t stood_ns = 0;  // the threads
  uint64_t fork_ns = 0;
  uint32_t scanner_pid = 0;  // 0: the process scanned itself, because of `note`
  std::string note;
};

struct ScanThread {
  uint32_t tid = 0;
  uint32_t serial = 0;
  format::ScanThreadState state{};
  uint64_t stack_pointer = 0;
  uint64_t stack_begin = 0, stack_end = 0;  // that was scanned
  std::vector<uint64_t> registers;
  uint64_t signal_stack_begin = 0, signal_stack_end = 0;  // 0: it has none, or it is not known
  uint64_t thread_pointer = 0;  // 0: not known
};

struct ScanRegion {
  uint32_t number = 0;
  format::ScanRegionKind kind{};
  format::ScanRegionUse use{};
  uint64_t start = 0, end = 0;
  uint64_t thread = 0;  // serial or tid
  std::string path;
  uint64_t bytes_failed = 0;
};

struct ScanHintRange {
  format::ScanHint kind{};
  uint64_t start = 0, end = 0;
};

struct ScanDone {
  uint64_t root_bytes = 0, territory_bytes = 0, skipped_bytes = 0, failed_bytes = 0;
  uint64_t cpu_ns = 0, elapsed_ns = 0;
};

struct Scan {
  uint32_t number = 0;
  bool has_begin = false;
  ScanBegin begin;
  std::vector<ScanThread> threads;
  std::vector<ScanRegion> regions;  // in the order of the file
  std::vector<ScanHintRange> hints;
  std::optional<ScanDone> done;
  std::string failure;     // of kFailed
  std::string damage;      // what is wrong with the scan in this file; empty: nothing
  uint64_t words = 0;

  const ScanRegion* FindRegion(uint64_t of_number) const {
    const auto at = region_index.find(of_number);
    return at == region_index.end() ? nullptr : &regions[at->second];
  }
  absl::flat_hash_map<uint64_t, size_t> region_index;  // number -> in `regions`
};

class ScanVisitor {
 public:
  virtual ~ScanVisitor() = default;
  virtual void Word(const ScanRegion& /*region*/, uint64_t /*address*/, uint64_t /*value*/) {}
  virtual void OnTarget(const Target& /*target*/) {}
  virtual void OnVtable(uint64_t /*address*/) {}
};

// The records of one block. False: one is malformed; what came before it was read.
bool ReadScanRecords(std::span<const uint8_t> content, Scan* scan, ScanVisitor* visitor);

// Scan `number` of a trace; `visitor` may be nullptr. With `only_begin`, as far as its kBegin.
Scan ReadScan(TraceReader& reader, uint32_t number, ScanVisitor* visitor, bool only_begin = false);

// The numbers of the scans of a trace, ascending.
std::vector<uint32_t> ScanNumbers(const TraceReader& reader);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_SCAN_READER_H_
