// FunctionScanner: the functions of one unit that contain wanted addresses.
//
// One pass over the bytes of the unit, DIE after DIE in file order, instead of
// a tree walk: nothing is looked up on the way and nothing is visited twice.
// (libdw's dwarf_siblingof() skips a subtree by walking it, unless the compiler
// left DW_AT_sibling, which clang does not.) A DIE that is no function is
// stepped over by its abbreviation. A function's ranges are read where they lie
// in the DIE; only DW_AT_ranges and .debug_addr indices ask libdw.
//
// No subtree is cut: nested functions (GNU C, Fortran, Ada) and methods inside
// types lie outside the ranges of what encloses them. But an inlined call is
// only looked at when the function around it contains a wanted address, and has
// only what of its ranges is that function's.
//
// A range that does not begin and end in code is of a function that the linker
// removed: it counts for nothing, nor does what was inlined there.

#ifndef MEMTRACE_SYMBOLIZER_FUNCTION_SCANNER_H_
#define MEMTRACE_SYMBOLIZER_FUNCTION_SCANNER_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "symbolizer/abbreviations.h"
#include "symbolizer/code_ranges.h"

namespace memtrace::symbolizer {

// One contiguous range of a function that contains a wanted address.
struct FunctionRange {
  uint64_t begin;
  uint64_t end;
  uint32_t function;  // index into ScannedFunctions::functions
};

struct ScannedFunction {
  static constexpr uint32_t kNone = UINT32_MAX;
  Dwarf_Off offset;  // of the DIE
  uint32_t parent;   // the function around an inlined call; kNone for a subprogram
};

struct ScannedFunctions {
  std::vector<ScannedFunction> functions;
  std::vector<FunctionRange> ranges;  // in DIE order: inner after outer
  bool damaged = false;               // the scan stopped before the end of the unit
};

struct UnitBytes {
  Dwarf* dwarf = nullptr;
  Dwarf_Off first_die = 0;   // offset of the unit DIE in .debug_info
  std::string_view dies;     // from the unit DIE to the end of the unit
  std::string_view abbreviations;
  UnitShape shape;
};

class FunctionScanner {
 public:
  explicit FunctionScanner(const CodeRanges& code) : code_(code) {}  // which outlives it

  // `wanted` is sorted. Keeps the last abbreviation table: neighbouring units often share it.
  ScannedFunctions Scan(const UnitBytes& unit, std::span<const uint64_t> wanted);

 private:
  // The function whose ranges are read; and, for an inlined call, where the ranges are
  // that they must lie in.
  struct RangesInside {
    uint32_t function;
    bool inlined;
    size_t first, last;
  };

  bool Keep(std::span<const FunctionRange> ranges, std::span<const uint64_t> wanted,
            const RangesInside& inside, std::vector<FunctionRange>* kept);
  bool ReadFunction(const UnitBytes& unit, const Abbreviation& abbreviation, Dwarf_Off offset,
                    ByteCursor* cursor, std::vector<FunctionRange>* ranges);

  const CodeRanges& code_;
  Abbreviations abbreviations_;
  const char* abbreviations_at_ = nullptr;
  UnitShape abbreviations_shape_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_FUNCTION_SCANNER_H_
