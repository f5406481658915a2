// FaultRings: the kernel's page-fault events of this process.
//
// Two rings for each processor the process may run on, into which the kernel writes a record
// for every minor and every major fault of the opening thread and of all threads it will start,
// they and theirs. (One ring for both would be enough, but the second event would need its
// descriptor: newer kernels do not map an event whose output goes elsewhere.) Fork children inherit
// nothing: neither the events nor the mappings. The mappings alone keep the events alive, no
// descriptor is left open; an exec ends them.
//
//   kernel   writes a record, then data_head          the record's processor
//   Drain()  reads up to data_head, then stores data_tail; one thread at a time
//
// A ring that is full makes the kernel drop records. It says how many with the next record of that
// ring: of a processor on which the program runs no more there is none.
//
// Open() makes system calls; the rest makes none.

#ifndef MEMTRACE_PRELOAD_FAULTS_FAULT_RINGS_H_
#define MEMTRACE_PRELOAD_FAULTS_FAULT_RINGS_H_

#include <linux/perf_event.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memtrace {

struct FaultRecord {
  uint64_t ns = 0;       // CLOCK_MONOTONIC
  uint32_t tid = 0;
  bool major = false;
  bool in_kernel = false;
  uint64_t address = 0;
  uint64_t pc = 0;       // of the instruction
  uint64_t lost = 0;     // not 0: no fault, but so many that are missing
};

class FaultRings {
 public:
  static constexpr size_t kMostRings = 512;

  struct Result {
    enum Step { kOpened, kEvents, kMapping, kProcessors } step = kOpened;  // what was refused
    long error = 0;                                                     // -errno
    bool with_kernel = false;
  };

  // `user_only`: not the faults that the kernel takes on the program's behalf. Those are left
  // out too where the kernel does not permit them.
  Result Open(bool user_only);
  // To be called in a fork child, where they are not mapped.
  void Forget();

  size_t count() const { return count_; }
  size_t ring_bytes() const { return ring_bytes_; }  // of one for minor faults

  // One of them is a quarter full.
  bool ShouldDrain() const { return HasMoreThan(/*quarters=*/1); }
  // There is an event in one.
  bool HasAny() const { return HasMoreThan(/*quarters=*/0); }

  // Calls visit(const FaultRecord&) for each record. One thread at a time.
  template <typename Visit>
  void Drain(Visit visit);

  // One was full when it was drained last: records may have been dropped that nobody has told.
  bool AnyWasFull() const;

 private:
  static constexpr size_t kRecordBytes = 40;  // of a fault, by the sample_type that is asked for

  struct Ring {
    perf_event_mmap_page* page;
    const uint8_t* data;
    size_t bytes;
    bool major;
    bool was_full;
  };

  long OpenRing(int cpu, bool major, bool user_only, Result::Step* step);
  void CloseAll();
  bool HasMoreThan(uint64_t quarters) const;  // of its bytes, one of them
  bool Parse(const Ring& ring, const uint64_t* words, size_t bytes, FaultRecord* record) const;

  static uint64_t Head(const Ring& ring) {
    return std::atomic_ref(ring.page->data_head).load(std::memory_order_acquire);
  }

  Ring rings_[kMostRings] = {};
  size_t count_ = 0;
  size_t ring_bytes_ = 0;
  uint32_t pid_ = 0;
};

template <typename Visit>
void FaultRings::Drain(Visit visit) {
  constexpr size_t kLargestRecord = 64;
  for (size_t i = 0; i < count_; ++i) {
    Ring& ring = rings_[i];
    const uint64_t head = Head(ring);
    uint64_t tail = ring.page->data_tail;  // ours alone to write
    if (head != tail) ring.was_full = head - tail + kRecordBytes > ring.bytes;
    const uint64_t mask = ring.bytes - 1;
    while (head - tail >= sizeof(perf_event_header) && head - tail <= ring.bytes) {
      // Records are multiples of 8 bytes, and may go round the end.
      uint64_t words[kLargestRecord / 8];
      words[0] = *reinterpret_cast<const uint64_t*>(ring.data + (tail & mask));
      const size_t bytes = static_cast<size_t>(words[0] >> 48);
      if (bytes < sizeof(perf_event_header) || bytes > head - tail) break;
      for (size_t at = 8; at + 8 <= bytes && at < kLargestRecord; at += 8) {
        words[at / 8] = *reinterpret_cast<const uint64_t*>(ring.data + ((tail + at) & mask));
      }
      FaultRecord record;
      if (bytes <= kLargestRecord && Parse(ring, words, bytes, &record)) visit(record);
      tail += bytes;
    }
    std::atomic_ref(ring.page->data_tail).store(head, std::memory_order_release);
  }
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FAULTS_FAULT_RINGS_H_
