// FaultStream: the fault events of a trace (format/faults.h) in the order of time.
//
// Opening reads the rest of what kFaults blocks say: the source, usage, what was lost. Then
// faults are given out one after the other (the few changes of the library's own memory are held);
// held are those of one turn, as many as the rings have room for. A fault that comes later than its
// turn promised is given out at once.

#ifndef MEMTRACE_REPORT_FAULTS_FAULT_STREAM_H_
#define MEMTRACE_REPORT_FAULTS_FAULT_STREAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/faults.h"

namespace memtrace::report {

class TraceReader;

struct Fault {
  uint64_t time_ns = 0;  // since the start
  uint64_t address = 0;
  uint64_t pc = 0;       // of the instruction; 0: in the kernel
  uint32_t tid = 0;
  bool major = false, in_kernel = false;
};

struct FaultUsage {
  uint64_t ns = 0;  // CLOCK_MONOTONIC
  uint64_t minor = 0, major = 0;
};

struct FaultLog {
  bool known = false;
  format::FaultSource source = format::FaultSource::kNone;
  FaultUsage at_start;  // counts before the first event
  FaultUsage latest;    // right before the last turn
  std::string why;
  uint64_t rings = 0, ring_bytes = 0, ns_per_fault = 0;
  uint64_t lost = 0;
  uint64_t last_lost_ns = 0;  // since the start: none was lost later. UINT64_MAX: nobody knows
};

class FaultStream {
 public:
  explicit FaultStream(TraceReader* reader);

  const FaultLog& log() const { return log_; }

  bool done() const { return held_.empty(); }
  const Fault& front() const { return held_.front(); }
  void Pop();

  // Whether the library had that memory at the time of the front.
  bool FrontIsOwn();
  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  static constexpr size_t kMostHeld = 1 << 20;

  struct OwnChange {
    uint64_t ns, begin, end;
    bool came;
  };

  void ReadLog();
  void Refill();
  void ReadFaults(const std::vector<uint8_t>& content);

  TraceReader* const reader_;
  FaultLog log_;
  size_t next_block_ = 0;
  uint64_t until_ns_ = 0;      // what is held up to here may go
  std::vector<OwnChange> own_changes_;    // by time
  size_t next_change_ = 0;
  std::map<uint64_t, uint64_t> own_now_;  // begin -> end
  std::vector<Fault> held_;    // a heap, the earliest in front
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_FAULT_STREAM_H_
