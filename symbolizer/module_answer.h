// A ModuleResult as bytes, on its way from the process that found it out.
//
//   answer = state message missed debug_file strings addresses
//   string = bytes:u32 byte*           each distinct one once, in `strings`
//   frame  = function:u32 linkage_name:u32 file:u32 line:u32 inlined:u32
//
// Names are at most kMaxNameBytes long (demangle.h): longer ones of functions and files are cut,
// longer linkage names left out.
//
// Decoding takes any bytes: every count is checked against what is left, and refused are names that
// are longer, and texts that together are more than kMostTextBytes when each frame has its own.

#ifndef MEMTRACE_SYMBOLIZER_MODULE_ANSWER_H_
#define MEMTRACE_SYMBOLIZER_MODULE_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

// Some million frames of a module with names of hundreds of bytes.
inline constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

std::string EncodeAnswer(const ModuleResult& result);

// False: not an answer, or not to a question of this many addresses.
bool DecodeAnswer(std::string_view bytes, size_t addresses, ModuleResult* result);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_MODULE_ANSWER_H_
