// InlineFrames: addresses of one unit -> the functions around them.
//
// FunctionScanner finds the function DIEs that contain wanted addresses; here
// their ranges become an AddressMap, and a chain of calls is built once for
// each innermost function and shared by all addresses in it.

#ifndef MEMTRACE_SYMBOLIZER_INLINE_FRAMES_H_
#define MEMTRACE_SYMBOLIZER_INLINE_FRAMES_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/address_map.h"
#include "symbolizer/function_names.h"
#include "symbolizer/function_scanner.h"
#include "symbolizer/source_paths.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

class InlineFrames {
 public:
  // `unit` is the unit DIE that the functions were scanned from.
  InlineFrames(Dwarf* dwarf, Dwarf_Die unit, ScannedFunctions functions, FunctionNames* names,
               SourcePaths* paths);

  // Innermost first; empty when no function is known. The innermost frame has
  // no file and line yet: they are the line table's to say.
  const std::vector<Frame>& Find(uint64_t address);

 private:
  std::vector<Frame> ChainOf(uint32_t function);

  Dwarf* dwarf_;
  FunctionNames* names_;
  SourcePaths* paths_;
  std::vector<ScannedFunction> functions_;
  AddressMap<uint32_t> by_address_;
  absl::flat_hash_map<uint32_t, std::vector<Frame>> chains_;
  Dwarf_Files* files_ = nullptr;
  size_t file_count_ = 0;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_INLINE_FRAMES_H_
