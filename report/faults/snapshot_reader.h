// The page snapshots of a trace as they were written (format/faults.h): the mappings of the process
// at a moment, and the pages of those that hold data.
//
// Nothing of the heap is known here: page_snapshots.h lays the live blocks over the pages.

#ifndef MEMTRACE_REPORT_FAULTS_SNAPSHOT_READER_H_
#define MEMTRACE_REPORT_FAULTS_SNAPSHOT_READER_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/faults.h"
#include "report/faults/page_runs.h"

namespace memtrace::report {

class TraceReader;

struct SnapshotMapping {
  uint64_t begin = 0, end = 0;
  std::string permissions, path;  // permissions: four characters
  uint64_t offset = 0, inode = 0;
  std::array<uint64_t, format::kMappingNumbers> kib{};  // in the order of FaultTag::kMapping

  uint64_t rss() const { return kib[0] << 10; }
  uint64_t swap() const { return kib[8] << 10; }
  uint64_t huge() const { return (kib[7] + kib[11] + kib[12]) << 10; }
  // Private memory of no file, whatever may be done with it: a program seals what it has filled.
  bool anonymous() const {
    const bool is_memory = path.empty() || path == "[heap]" || path.starts_with("[anon:");
    return inode == 0 && permissions[3] == 'p' && (permissions[1] == 'w' || is_memory);
  }
  // Whether its pages are told.
  bool holds_data() const { return permissions[1] == 'w' || anonymous(); }
};

struct SnapshotHead {
  uint32_t number = 0;
  format::SnapshotReason reason = format::SnapshotReason::kEnd;
  uint64_t ticks = 0;
  format::PageSource source = format::PageSource::kNone;
  std::string name;          // of a mark
  uint64_t rollup_rss = 0;   // what smaps_rollup said; 0: nothing
  uint64_t peak_rss = 0;     // VmHWM
  uint64_t page_tables = 0;
};

struct RawSnapshot {
  SnapshotHead head;
  std::vector<SnapshotMapping> mappings;              // as the kernel lists them: by address
  std::vector<PageRun> runs;                          // by begin; of those that hold data
  std::vector<std::pair<uint64_t, uint64_t>> own;     // memory of the library
  uint64_t pages_left_out = 0;
  bool done = false;                                  // else it was cut short
};

// Where a snapshot begins in the trace.
struct SnapshotPlace {
  size_t block = 0;   // of reader.fault_blocks()
  size_t record = 0;  // in that
  SnapshotHead head;
};

// The first kMostSnapshots, in the order of the file.
inline constexpr size_t kMostSnapshots = 256;
std::vector<SnapshotPlace> FindSnapshots(TraceReader* reader);

// Reads on from there to its end.
RawSnapshot ReadSnapshot(TraceReader* reader, const SnapshotPlace& place, uint64_t page_bytes);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_SNAPSHOT_READER_H_
