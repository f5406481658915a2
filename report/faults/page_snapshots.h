// PageSnapshots: the resident pages of the process at some moments, and whose they were.
//
//   PageSnapshots snapshots(&reader, range, beside);
//   while events come, in order:
//     if (ticks of the event's span > snapshots.next_ticks()) snapshots.Take(model, mappings, ticks);
//   snapshots.Take(model, mappings, UINT64_MAX); snapshots.Finish(model, &resident)
//
// Take() reads a snapshot once (format/faults.h) and lays the live blocks of that instant over
// its pages. A page that several blocks share is parted among them by bytes. Memory: the runs
// of one snapshot, a copy of the mappings, and a sorted one of the live blocks.
//
// What is laid out is a copy, so that `beside` lets a thread of its own do that while the events go
// on: one snapshot at a time, the next one waits for it. What comes out is the same.

#ifndef MEMTRACE_REPORT_FAULTS_PAGE_SNAPSHOTS_H_
#define MEMTRACE_REPORT_FAULTS_PAGE_SNAPSHOTS_H_

#include <algorithm>
#include <cstdint>
#include <future>
#include <utility>
#include <vector>

#include "report/faults/address_space.h"
#include "report/faults/snapshot_reader.h"
#include "report/findings/range.h"
#include "report/findings/rss_bridge.h"
#include "report/model/heap_model.h"
#include "report/model/mapping_model.h"

namespace memtrace::report {

class TraceReader;

class PageSnapshots {
 public:
  PageSnapshots(TraceReader* reader, const Range& range, bool beside);

  uint64_t next_ticks() const { return next_ticks_; }
  void Take(const HeapModel& model, const MappingModel& mappings, uint64_t ticks);
  // The range ends here, if not before: what comes later has not been taken.
  void EndAt(uint64_t ns) { range_.to_ns = std::min(range_.to_ns, ns); }
  void Finish(const HeapModel& model, ResidentMemory* resident);

 private:
  // The sites by their numbers in the model, which the model's thread alone may ask for more.
  struct Laid {
    RssBridge bridge;
    std::vector<std::pair<uint32_t, ResidentSite>> sites;
  };
  struct Instant;  // all that is laid out

  void TakeOne(const HeapModel& model, const MappingModel& mappings, const SnapshotPlace& place);
  static Laid Lay(Instant instant, const AddressSpace& space);
  void Collect(const HeapModel& model);
  void Add(const HeapModel& model, Laid laid);

  TraceReader* const reader_;
  Range range_;
  const bool beside_;
  const AddressSpace space_;
  std::vector<SnapshotPlace> waiting_;  // the next one last
  uint64_t next_ticks_ = UINT64_MAX;
  ResidentMemory found_;
  std::future<Laid> being_laid_;  // the latest, on its thread
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_PAGE_SNAPSHOTS_H_
