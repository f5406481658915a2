// ScanWriter: the records of a memory scan, as blocks of the trace.
//
// Two streams: the records in order, and lists that grow beside them and are written when
// their buffer is full. After a block that could not be written nothing more is.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WRITER_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/memory_scan.h"
#include "format/record_encoder.h"

namespace memtrace {

class ScanWriter {
 public:
  static constexpr size_t kBytes = 256 << 10;  // of a buffer
  // A list is closed and a new one begun when this many bytes are left.
  static constexpr size_t kLeast = 8 << 10;

  // `buffer` of kBytes. `parent`: the process whose scan it is, if this is a copy of it; when it
  // is gone, so is the copy at its next block. 0: this one.
  ScanWriter(uint32_t number, void* buffer, int parent)
      : encoder_(static_cast<uint8_t*>(buffer), kBytes), number_(number), parent_(parent) {}

  format::RecordEncoder& Begin(format::ScanTag tag, size_t room = kLeast) {
    if (kBytes - encoder_.size() < room) Flush();
    encoder_.Begin(static_cast<format::RecordTag>(tag));
    return encoder_;
  }
  void End() { encoder_.End(); }
  format::RecordEncoder& encoder() { return encoder_; }
  bool HasRoom() const { return kBytes - encoder_.size() > kLeast / 2; }
  void Flush();
  bool failed() const { return failed_; }

  // Lets all writers of a scan count their blocks in `blocks`, where the process that waits
  // for the scan sees it.
  static void CountIn(std::atomic<uint32_t>& blocks) { blocks_ = &blocks; }

 private:
  static std::atomic<uint32_t>* blocks_;
  format::RecordEncoder encoder_;
  const uint32_t number_;
  const int parent_;
  bool failed_ = false;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WRITER_H_
