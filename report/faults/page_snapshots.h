// PageSnapshots: the resident pages of the process at some moments, and whose they were.
//
//   PageSnapshots snapshots(&reader, range);
//   while events come, in order:
//     if (ticks of the event's span > snapshots.next_ticks()) snapshots.Take(model, ticks);
//   snapshots.Take(model, UINT64_MAX); snapshots.Finish(&details)
//
// Take() reads a snapshot once (format/faults.h) and lays the live blocks of that instant over
// its pages. A page that several blocks share is parted among them by bytes. Memory: the runs
// of one snapshot and a sorted copy of the live blocks.

#ifndef MEMTRACE_REPORT_FAULTS_PAGE_SNAPSHOTS_H_
#define MEMTRACE_REPORT_FAULTS_PAGE_SNAPSHOTS_H_

#include <cstdint>
#include <vector>

#include "report/analysis.h"
#include "report/faults/address_space.h"
#include "report/faults/rss_bridge.h"
#include "report/faults/snapshot_reader.h"
#include "report/heap_model.h"
#include "report/mapping_model.h"

namespace memtrace::report {

class TraceReader;

class PageSnapshots {
 public:
  PageSnapshots(TraceReader* reader, const Range& range);

  uint64_t next_ticks() const { return next_ticks_; }
  void Take(const HeapModel& model, const MappingModel& mappings, uint64_t ticks);
  void Finish(ResidentMemory* resident);

 private:
  void TakeOne(const HeapModel& model, const MappingModel& mappings, const SnapshotPlace& place);

  TraceReader* const reader_;
  const Range range_;
  const AddressSpace space_;
  std::vector<SnapshotPlace> waiting_;  // the next one last
  uint64_t next_ticks_ = UINT64_MAX;
  ResidentMemory found_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_PAGE_SNAPSHOTS_H_
