#include "preload/sampler.h"

#include <bit>

namespace memtrace {
namespace {

constexpr unsigned kFractionBits = 52;
constexpr uint64_t kLn2 = 0xb17217f7d1cf79ab;  // ln 2 in units of 2^-64

}  // namespace

uint64_t NegativeLog2(uint64_t u) {
  const auto zeros = static_cast<unsigned>(std::countl_zero(u));
  uint64_t m = u << zeros;  // in [1, 2), units of 2^-63
  uint64_t log2 = uint64_t{63 - zeros} << kFractionBits;
  for (uint64_t bit = uint64_t{1} << (kFractionBits - 1); bit != 0; bit >>= 1) {
    const unsigned __int128 square = static_cast<unsigned __int128>(m) * m;
    if (square >> 127 != 0) {
      log2 |= bit;
      m = static_cast<uint64_t>(square >> 64);
    } else {
      m = static_cast<uint64_t>(square >> 63);
    }
  }
  return (uint64_t{64} << kFractionBits) - log2;
}

uint64_t DrawDistance(uint64_t* random, uint64_t mean_bytes) {
  uint64_t u = NextRandom(random);
  if (u == 0) u = 1;
  const auto nats = static_cast<uint64_t>(
      static_cast<unsigned __int128>(NegativeLog2(u)) * kLn2 >> 64);  // units of 2^-52
  return static_cast<uint64_t>(static_cast<unsigned __int128>(nats) * mean_bytes >>
                               kFractionBits) + 1;
}

}  // namespace memtrace
