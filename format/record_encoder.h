// RecordEncoder: builds records (see records.h) in a buffer of the caller.
//
// Runs inside the traced program: no allocation, no failure but a full buffer,
// which leaves the records before it whole and makes overflowed() true.

#ifndef MEMTRACE_FORMAT_RECORD_ENCODER_H_
#define MEMTRACE_FORMAT_RECORD_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "format/records.h"
#include "format/varint.h"

namespace memtrace::format {

class RecordEncoder {
 public:
  RecordEncoder(uint8_t* buffer, size_t capacity)
      : begin_(buffer), end_(buffer + capacity), position_(buffer) {}

  // Opens a record; every field up to End() belongs to it.
  void Begin(RecordTag tag) {
    record_ = position_;
    Number(static_cast<uint64_t>(tag));
    length_ = position_;
    if (Room(kLengthBytes)) position_ += kLengthBytes;
    body_ = position_;
  }

  void Number(uint64_t value) {
    if (Room(kMaxVarintBytes)) position_ = PutVarint(position_, value);
  }

  void Bytes(std::string_view bytes) {
    if (!Room(kMaxVarintBytes + bytes.size())) return;
    position_ = PutVarint(position_, bytes.size());
    if (!bytes.empty()) memcpy(position_, bytes.data(), bytes.size());
    position_ += bytes.size();
  }

  // Closes the record, or takes it back when it did not fit.
  void End() {
    if (failed_) {
      position_ = record_;
      failed_ = false;
      overflowed_ = true;
      return;
    }
    // The length was left open: four bytes of a padded varint hold 28 bits.
    const size_t bytes = static_cast<size_t>(position_ - body_);
    for (size_t i = 0; i < kLengthBytes; ++i) {
      const uint8_t more = i + 1 < kLengthBytes ? 0x80 : 0;
      length_[i] = static_cast<uint8_t>(bytes >> (7 * i) & 0x7f) | more;
    }
  }

  // A whole record: what somebody counted.
  void Counter(std::string_view name, uint64_t value) {
    Begin(RecordTag::kCounter);
    Bytes(name);
    Number(value);
    End();
  }

  bool overflowed() const { return overflowed_; }
  const uint8_t* data() const { return begin_; }
  size_t size() const { return static_cast<size_t>(position_ - begin_); }
  void Clear() {
    position_ = begin_;
    failed_ = overflowed_ = false;
  }

 private:
  static constexpr size_t kLengthBytes = 4;

  bool Room(size_t bytes) {
    if (failed_ || static_cast<size_t>(end_ - position_) < bytes) failed_ = true;
    return !failed_;
  }

  uint8_t* const begin_;
  uint8_t* const end_;
  uint8_t* position_;
  uint8_t* record_ = nullptr;
  uint8_t* length_ = nullptr;
  uint8_t* body_ = nullptr;
  bool failed_ = false;
  bool overflowed_ = false;
};

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_RECORD_ENCODER_H_
