// FaultWriter: kFaults blocks of the trace. One at a time writes, see FaultLock.

#ifndef MEMTRACE_PRELOAD_FAULTS_FAULT_WRITER_H_
#define MEMTRACE_PRELOAD_FAULTS_FAULT_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/faults.h"
#include "format/record_encoder.h"

namespace memtrace {

// Held by whoever writes kFaults blocks. Taken or not: nobody waits.
// Within SignalsBlocked, and released before the signals are back: a handler that jumps
// would leave it taken.
class FaultLock {
 public:
  FaultLock() : mine_(!taken_.exchange(true, std::memory_order_acquire)) {}
  ~FaultLock() {
    if (mine_) taken_.store(false, std::memory_order_release);
  }
  FaultLock(const FaultLock&) = delete;
  FaultLock& operator=(const FaultLock&) = delete;
  explicit operator bool() const { return mine_; }

  // To be called in a fork child.
  static void Forget() { taken_.store(false, std::memory_order_relaxed); }

 private:
  static std::atomic<bool> taken_;
  const bool mine_;
};

class FaultWriter {
 public:
  FaultWriter(void* buffer, size_t bytes)
      : out_(static_cast<uint8_t*>(buffer), bytes), bytes_(bytes) {}
  ~FaultWriter() { Flush(); }
  FaultWriter(const FaultWriter&) = delete;
  FaultWriter& operator=(const FaultWriter&) = delete;

  format::RecordEncoder& Begin(format::FaultTag tag) {
    out_.Begin(static_cast<format::RecordTag>(tag));
    return out_;
  }
  void End() { out_.End(); }
  size_t room() const { return bytes_ - out_.size(); }
  // False: what was in the buffer is lost.
  bool Flush();

  static void RestartSequence() { sequence_ = 0; }

 private:
  static uint32_t sequence_;
  format::RecordEncoder out_;
  const size_t bytes_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FAULTS_FAULT_WRITER_H_
