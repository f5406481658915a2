// RecordDecoder: walks the records of a kMetadata payload. Every length is
// checked; a record that does not fit its payload ends the walk with ok() false.

#ifndef MEMTRACE_FORMAT_RECORD_DECODER_H_
#define MEMTRACE_FORMAT_RECORD_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/records.h"
#include "format/varint.h"

namespace memtrace::format {

// The fields of one record, read in order. Past the last one Number() is 0 and
// Bytes() empty, so that a newer reader understands an older writer.
class RecordBody {
 public:
  RecordBody() = default;
  RecordBody(const uint8_t* begin, const uint8_t* end) : position_(begin), end_(end) {}

  uint64_t Number() {
    uint64_t value = 0;
    const uint8_t* next = GetVarint(position_, end_, &value);
    position_ = next != nullptr ? next : end_;
    return next != nullptr ? value : 0;
  }

  // Points into the payload.
  std::string_view Bytes() {
    const uint64_t length = Number();
    if (length > static_cast<size_t>(end_ - position_)) {
      position_ = end_;
      return {};
    }
    const std::string_view bytes(reinterpret_cast<const char*>(position_), length);
    position_ += length;
    return bytes;
  }

  bool at_end() const { return position_ == end_; }

 private:
  const uint8_t* position_ = nullptr;
  const uint8_t* end_ = nullptr;
};

class RecordDecoder {
 public:
  RecordDecoder(const uint8_t* payload, size_t bytes)
      : begin_(payload), position_(payload), end_(payload + bytes) {}

  // Moves to the next record. False at the end, and at a malformed record.
  bool Next() {
    if (position_ == end_) return false;
    uint64_t tag = 0, length = 0;
    const uint8_t* p = GetVarint(position_, end_, &tag);
    if (p != nullptr) p = GetVarint(p, end_, &length);
    if (p == nullptr || length > static_cast<size_t>(end_ - p)) {
      ok_ = false;
      return false;
    }
    tag_ = tag;
    body_ = RecordBody(p, p + length);
    position_ = p + length;
    return true;
  }

  uint64_t tag() const { return tag_; }  // may be one this version does not know
  RecordBody& body() { return body_; }
  bool ok() const { return ok_; }
  size_t offset() const { return static_cast<size_t>(position_ - begin_); }

 private:
  const uint8_t* begin_;
  const uint8_t* position_;
  const uint8_t* end_;
  uint64_t tag_ = 0;
  RecordBody body_;
  bool ok_ = true;
};

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_RECORD_DECODER_H_
