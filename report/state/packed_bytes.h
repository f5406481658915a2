// Numbers and texts in few bytes: unsigned LEB128, the sign in the lowest bit where there is one;
// floating point exact. A reader never reads beyond its bytes; what is not there is 0, and ok()
// is false from then on.

#ifndef MEMTRACE_REPORT_STATE_PACKED_BYTES_H_
#define MEMTRACE_REPORT_STATE_PACKED_BYTES_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace memtrace::report::index {

class PackedWriter {
 public:
  void Number(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void Signed(int64_t value) {
    Number(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  // The end with the exponent first: 0 and whole numbers are short.
  void Real(double value) { Number(__builtin_bswap64(std::bit_cast<uint64_t>(value))); }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  uint64_t Number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  int64_t Signed() {
    const uint64_t value = Number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  double Real() { return std::bit_cast<double>(__builtin_bswap64(Number())); }
  std::string_view Text() {
    const uint64_t bytes = Number();
    if (bytes > left()) {
      Fail();
      return {};
    }
    const std::string_view text(at_, bytes);
    at_ += bytes;
    return text;
  }
  // The number of elements that follow. Each takes at least a byte, so a number that is larger than
  // what is left is an error.
  size_t Count() {
    const uint64_t count = Number();
    if (count <= left()) return count;
    Fail();
    return 0;
  }

  size_t left() const { return static_cast<size_t>(end_ - at_); }
  bool ok() const { return ok_; }
  void Fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  const char* at_;
  const char* const end_;
  bool ok_ = true;
};

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_STATE_PACKED_BYTES_H_
