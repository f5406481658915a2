// A ModuleResult as bytes, on its way from the process that found it out.
//
//   answer = state message missed debug_file strings addresses
//   string = bytes:u32 byte*           each distinct one once, in `strings`
//   frame  = function:u32 linkage_name:u32 file:u32 line:u32 inlined:u32
//
// Decoding takes any bytes: every count is checked against what is left.

#ifndef MEMTRACE_SYMBOLIZER_MODULE_ANSWER_H_
#define MEMTRACE_SYMBOLIZER_MODULE_ANSWER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

std::string EncodeAnswer(const ModuleResult& result);

// False: not an answer, or not to a question of this many addresses.
bool DecodeAnswer(std::string_view bytes, size_t addresses, ModuleResult* result);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_MODULE_ANSWER_H_
