// ByteReader: fixed-size and LEB128 numbers from a bounded run of bytes.
//
// A read past the end gives 0, moves to the end and clears ok(): a parser may
// check once, behind a group of reads. Any thread; no state but its own.

#ifndef MEMTRACE_PRELOAD_UNWIND_BYTE_READER_H_
#define MEMTRACE_PRELOAD_UNWIND_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memtrace::unwind {

class ByteReader {
 public:
  ByteReader() = default;
  ByteReader(const uint8_t* begin, const uint8_t* end) : at_(begin), end_(end) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const uint8_t* at() const { return at_; }
  const uint8_t* end() const { return end_; }

  template <typename T>
  T Fixed() {
    T value{};
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint8_t Byte() { return Fixed<uint8_t>(); }

  // Bits beyond 64 are dropped, as every other reader of CFI does.
  uint64_t Uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_ == end_) return Fail();
      const uint8_t byte = *at_++;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  int64_t Sleb() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
      if (at_ == end_) return static_cast<int64_t>(Fail());
      byte = *at_++;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }

  // `bytes` bytes from here as a reader of their own.
  ByteReader Block(uint64_t bytes) {
    if (bytes > left()) {
      Fail();
      return {};
    }
    const uint8_t* begin = at_;
    at_ += bytes;
    return {begin, at_};
  }

  void Skip(uint64_t bytes) { Block(bytes); }

 private:
  uint64_t Fail() {
    at_ = end_;
    ok_ = false;
    return 0;
  }

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_BYTE_READER_H_
