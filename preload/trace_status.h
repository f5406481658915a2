// TraceStatus: what the trace says in place, when nothing can be appended any more.
//
// format::StatusArea lies in the first page of the trace file, written when the file was
// created and mapped shared: so a store reaches the reader on a full disk, without a
// descriptor, past RLIMIT_FSIZE and through SIGKILL. Where the file system has no shared
// mappings the stores are to private memory, and Write() puts them into the file, as long as
// it can be written. So they are where a store to a mapping may find the disk full however often
// the page was written before: file systems that write each time to another place (btrfs). There
// the page is mapped for another program's requests alone, and before an answer is stored the
// kernel is asked for the space.
//
// Threads: Note...() on any thread at any time, from the first instruction of the process
// on; before Attach() they go nowhere. All counters are atomic and only grow.

#ifndef MEMTRACE_PRELOAD_TRACE_STATUS_H_
#define MEMTRACE_PRELOAD_TRACE_STATUS_H_

#include <atomic>
#include <cstdint>

#include "format/memory_scan.h"
#include "format/records.h"
#include "format/trace_format.h"

namespace memtrace {

class TraceStatus {
 public:
  static constexpr uint64_t kBlockOffset = sizeof(format::FileHeader);
  static constexpr uint64_t kOffset = kBlockOffset + sizeof(format::BlockHeader);
  static constexpr uint64_t kEnd = kOffset + sizeof(format::StatusArea);

  // The area of a new file as it has to be written before Attach().
  static format::StatusArea NewArea();

  // Maps the area of the file open at `fd`, which holds `initial`. In a fork child it lets go
  // of the parent's. `stores_take_space`: each may be to another place of the disk.
  void Attach(long fd, const format::StatusArea& initial, bool stores_take_space);

  // The file is another process's: nothing that is noted from now on reaches it.
  void Forsake() {
    area_.store(&private_area_, std::memory_order_release);
    scans_.store(&private_area_, std::memory_order_release);
  }

  void NoteLoss(uint64_t events, uint64_t ticks, format::RecordingStop why, long error);
  void NoteMissed(uint64_t missed_so_far) { Raise(area().missed_events, missed_so_far); }
  void NoteStop(uint64_t ticks, format::RecordingStop why, long error);

  // The segments of a flight recorder: segments.h alone writes these fields.
  format::StatusArea& area() { return *area_.load(std::memory_order_acquire); }

  // Memory scans on request of another program, which writes the first of these words
  // and reads the others.
  uint64_t scan_request() const {
    return std::atomic_ref(scans_.load(std::memory_order_acquire)->scan_request)
        .load(std::memory_order_acquire);
  }
  // False: it must not be stored, see TraceFile::AnswerScan().
  bool AnswerScan(uint64_t answer);
  bool NoteScanFinished(uint32_t number);
  bool NoteNoScans(format::NoScans why);
  // The same of what could not be written. False also where nobody else would see it: it may be a
  // copy of the process that notes it.
  bool NoteLostScan(uint32_t number, format::RecordingStop why, long error);
  bool NoteLostEnd(format::RecordingStop why, long error);
  // In a fork child that could not create a file: counts it in the area that was attached last,
  // which is that of a process above it.
  bool NoteUntracedChild(long error);

  // Writes the area to the file, if it is in private memory. `fd` is the trace, open for writing.
  void Write(long fd);

  static void Raise(uint64_t& field, uint64_t value) {
    std::atomic_ref at(field);
    uint64_t before = at.load(std::memory_order_relaxed);
    while (before < value && !at.compare_exchange_weak(before, value, std::memory_order_acq_rel)) {
    }
  }

 private:
  format::StatusArea* ScansForStoring();
  format::StatusArea* SharedForStoring();
  bool MayStore() const;
  format::StatusArea* mapped() const {
    return reinterpret_cast<format::StatusArea*>(static_cast<char*>(mapping_) + kOffset);
  }

  format::StatusArea private_area_ = {};
  std::atomic<format::StatusArea*> area_{&private_area_};
  std::atomic<format::StatusArea*> scans_{&private_area_};
  bool stores_take_space_ = false;
  std::atomic<uint64_t> written_{0};  // what Write() wrote last, as a sum of its counters
  void* mapping_ = nullptr;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_STATUS_H_
