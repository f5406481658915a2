// Demangle(): linkage names -> names a person reads.
//
// C++ and old-style Rust names (_Z...) by abi::__cxa_demangle; everything else
// is returned unchanged. Names come from files that may be damaged: very long
// ones are not tried, and a very long result is cut with "...".

#ifndef MEMTRACE_SYMBOLIZER_DEMANGLE_H_
#define MEMTRACE_SYMBOLIZER_DEMANGLE_H_

#include <string>
#include <string_view>

namespace memtrace::symbolizer {

inline constexpr size_t kMaxMangledBytes = 8192;
inline constexpr size_t kMaxDemangledBytes = 8192;

bool IsMangled(std::string_view name);  // a linkage name of C++ or Rust
std::string Demangle(std::string_view name);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DEMANGLE_H_
