// Sampler: which allocations are recorded when not all are (MEMTRACE_SAMPLE_BYTES=N).
//
// A Poisson process runs over the bytes that a thread allocates: the distance from
// one point to the next is exponential with mean N. An allocation with a point in
// its bytes is sampled. So one of s bytes is sampled with the probability
//
//   p(s) = 1 - exp(-s / N)
//
// independently of all others, and whoever counts each sampled one 1 / p(s) times
// has unbiased totals (docs/sampling.md). The exponential distribution has no memory:
// a thread that ends, a point that was passed over or a draw made anew loses nothing.
//
// ThreadSlot::until_sample is floor(distance) + 1, so that an allocation is sampled
// exactly when until_sample <= its bytes. One of 0 bytes never is.
//
// Integers only. Floating point would change what the program can see (the inexact
// flag), obey its rounding mode, and trap where it has exceptions unmasked.

#ifndef MEMTRACE_PRELOAD_SAMPLER_H_
#define MEMTRACE_PRELOAD_SAMPLER_H_

#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"

namespace memtrace {

// The largest mean distance; so that one byte more or less is no matter to the draw.
inline constexpr uint64_t kMaxSampleBytes = uint64_t{1} << 40;

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014): every state is a good one, the streams of two seeds are independent
// for all that can be seen.
inline uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// -log2(u / 2^64) in units of 2^-52, for u of 1 and more: a binary digit at a time, by
// squaring (Majithia and Levan: A note on base-2 logarithm computations, Proc. IEEE
// 61(10), 1973). Some 60 ns; a draw is made for each sampled allocation.
uint64_t NegativeLog2(uint64_t u);

// One draw: floor(x) + 1 for x exponential with this mean (inversion: -mean ln u).
uint64_t DrawDistance(uint64_t* random, uint64_t mean_bytes);

// Takes `bytes` off `until`. True: to be sampled, and `until` is 0 or below it until it is drawn
// anew: a handler that comes before that finds it reached (PrepareAlloc()). No request of 2^63
// bytes or more is met, and none is sampled.
[[gnu::always_inline]] inline bool TakeBytes(uint64_t& until, size_t bytes) {
  return arch::SubtractReaches(until, bytes);
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SAMPLER_H_
