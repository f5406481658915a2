// What the parts of a memory scan have in common: pages and words.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WORDS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WORDS_H_

#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/rounding.h"

namespace memtrace {

inline constexpr uintptr_t kPage = arch::kPageBytes;
inline constexpr uintptr_t kWord = sizeof(uint64_t);
inline constexpr uintptr_t kAddresses = uintptr_t{1} << arch::kAddressBits;

// Others may write there meanwhile: a scan looks at their memory as it is.
[[gnu::no_sanitize_thread]] inline uint64_t Load(uintptr_t address) {
  return *reinterpret_cast<const uint64_t*>(address);
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_WORDS_H_
