// Unsigned LEB128: seven bits a byte, least significant first, the top bit set
// on every byte but the last. At most ten bytes for 64 bits.
// https://dwarfstd.org (DWARF 5, section 7.6) describes the same encoding.

#ifndef MEMTRACE_FORMAT_VARINT_H_
#define MEMTRACE_FORMAT_VARINT_H_

#include <cstddef>
#include <cstdint>

namespace memtrace::format {

inline constexpr size_t kMaxVarintBytes = 10;

// Writes `value` at `out`, which has room for kMaxVarintBytes. Returns the end.
inline uint8_t* PutVarint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value) | 0x80;
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Reads a varint from [p, end). Returns the first byte after it, or nullptr
// when the input ends inside it or it has more than 64 bits.
inline const uint8_t* GetVarint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  uint64_t result = 0;
  for (unsigned shift = 0; p != end; shift += 7) {
    const uint8_t byte = *p++;
    if (shift == 63 && byte > 1) return nullptr;
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return p;
    }
    if (shift == 63) return nullptr;
  }
  return nullptr;
}

// Signed differences, of 64 bits and modulo 2^64, as small unsigned numbers: 0, -1, 1, -2, ...
// https://protobuf.dev/programming-guides/encoding/#signed-ints
inline uint64_t ZigZag(uint64_t difference) {
  return difference << 1 ^ static_cast<uint64_t>(static_cast<int64_t>(difference) >> 63);
}
inline uint64_t UnZigZag(uint64_t value) { return value >> 1 ^ (~(value & 1) + 1); }

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_VARINT_H_
