// FindLineRows(): the rows of a line program (DWARF 2 to 5) that hold at wanted addresses.
//
// libdw gives all rows of a unit sorted by address, and no longer says which sequence a row is of.
// That is what tells code that is there from code that the linker removed: the rows of a removed
// function begin at 0, and those of a large one lie between the rows of what has these addresses.
// So the program is run here, and a sequence that does not begin in code counts for nothing.
//
// No row is stored: addresses only rise in a sequence, and the sorted wanted ones are passed on the
// way. Where two sequences have an address (functions that the linker folded into one) the first
// has it.
//
// Pure, any thread. The bytes may be anything: what was found before the damage stays.

#ifndef MEMTRACE_SYMBOLIZER_LINE_PROGRAM_H_
#define MEMTRACE_SYMBOLIZER_LINE_PROGRAM_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "symbolizer/code_ranges.h"

namespace memtrace::symbolizer {

struct LineRow {
  bool found = false;
  uint64_t file = 0;  // index into the unit's table of files, whatever the version
  uint32_t line = 0;  // 0: no line of the source made this code
};

// `section` is .debug_line, `offset` that of the unit's program. `wanted` is sorted and without
// repetition; `rows` has as many entries, none of them found yet. False: the program is damaged.
bool FindLineRows(std::string_view section, uint64_t offset, const CodeRanges& code,
                  std::span<const uint64_t> wanted, std::span<LineRow> rows);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_LINE_PROGRAM_H_
