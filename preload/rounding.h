// Up and down to the next multiple: of pages, words, and what a trace file is made of.

#ifndef MEMTRACE_PRELOAD_ROUNDING_H_
#define MEMTRACE_PRELOAD_ROUNDING_H_

#include <cstdint>

namespace memtrace {

constexpr uint64_t Down(uint64_t value, uint64_t to) { return value / to * to; }
constexpr uint64_t Up(uint64_t value, uint64_t to) { return Down(value + to - 1, to); }

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_ROUNDING_H_
