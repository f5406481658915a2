// Demangle(): linkage names -> names a person reads.
//
// C++ by abi::__cxa_demangle; Rust, of the older mangling (_ZN...17h and a hash, which is
// left out) and of the newer one (_R...), by libiberty where the build had it, else the
// older one by __cxa_demangle; D (_D...) by libiberty; everything else is returned
// unchanged. Names come from files that may be damaged: very long ones are not tried and returned
// unchanged, and a very long result is cut with "...".

#ifndef MEMTRACE_SYMBOLIZER_DEMANGLE_H_
#define MEMTRACE_SYMBOLIZER_DEMANGLE_H_

#include <string>
#include <string_view>

namespace memtrace::symbolizer {

inline constexpr size_t kMaxMangledBytes = 8192;
// Of what was demangled, and of any name that leaves the process that read it: a file may have one
// of 100 MB, which is then that of many addresses.
inline constexpr size_t kMaxNameBytes = 8192;

bool IsMangled(std::string_view name);  // a linkage name of C++, Rust or D
bool IsRust(std::string_view name);     // of Rust, of either mangling, with LLVM's suffix or not
std::string Demangle(std::string_view name);

// Not longer than kMaxNameBytes: else cut, between two characters of UTF-8, with "..." behind.
void CutName(std::string* name);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DEMANGLE_H_
