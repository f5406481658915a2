// ByteCursor: a checked reader of little-endian bytes.
//
// Every read either fits or marks the cursor as failed; a failed cursor returns
// zeros and stands at its end, so a loop over it terminates.

#ifndef MEMTRACE_SYMBOLIZER_BYTE_CURSOR_H_
#define MEMTRACE_SYMBOLIZER_BYTE_CURSOR_H_

#include <cstdint>
#include <cstring>
#include <string_view>

namespace memtrace::symbolizer {

class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return at_ == end_; }
  size_t position() const { return static_cast<size_t>(at_ - begin_); }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  void Skip(uint64_t count) {
    if (count > left()) {
      Fail();
    } else {
      at_ += count;
    }
  }

  // An integer of 1, 2, 3, 4 or 8 bytes.
  uint64_t Fixed(size_t count) {
    if (count > left() || count > 8) {
      Fail();
      return 0;
    }
    uint64_t value = 0;
    std::memcpy(&value, at_, count);
    at_ += count;
    return value;
  }

  uint64_t Leb() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ != end_; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }

  int64_t SignedLeb() {
    uint64_t value = 0;
    unsigned shift = 0;
    while (at_ != end_) {
      const uint8_t byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    Fail();
    return 0;
  }

  void SkipLeb() {
    while (at_ != end_) {
      if ((static_cast<uint8_t>(*at_++) & 0x80) == 0) return;
    }
    Fail();
  }

  void SkipString() {
    const void* nul = left() == 0 ? nullptr : std::memchr(at_, 0, left());
    if (nul == nullptr) {
      Fail();
    } else {
      at_ = static_cast<const char*>(nul) + 1;
    }
  }

 private:
  void Fail() {
    ok_ = false;
    at_ = end_;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_BYTE_CURSOR_H_
