// What the parts of a memory scan have in common: pages and words.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WORDS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WORDS_H_

#include <cstdint>

#include "preload/arch/arch.h"

namespace memtrace {

inline constexpr uintptr_t kPage = arch::kPageBytes;
inline constexpr uintptr_t kWord = sizeof(uint64_t);
inline constexpr uintptr_t kAddresses = uintptr_t{1} << arch::kAddressBits;

constexpr uintptr_t Down(uintptr_t value, uintptr_t to) { return value & ~(to - 1); }
constexpr uintptr_t Up(uintptr_t value, uintptr_t to) { return Down(value + to - 1, to); }
inline uint64_t Load(uintptr_t address) { return *reinterpret_cast<const uint64_t*>(address); }

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WORDS_H_
