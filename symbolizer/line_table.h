// LineTable: the file and line of wanted addresses of one unit.
//
// The rows are found by FindLineRows() (line_program.h), the names of the files are libdw's.
//
// Line 0 is a statement of the compiler ("no line of the source made this
// code"), and is passed on: the file is named and the line stays unknown.

#ifndef MEMTRACE_SYMBOLIZER_LINE_TABLE_H_
#define MEMTRACE_SYMBOLIZER_LINE_TABLE_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "symbolizer/code_ranges.h"
#include "symbolizer/line_program.h"

namespace memtrace::symbolizer {

class LineTable {
 public:
  struct Row {
    const char* file = nullptr;  // null when not known; belongs to libdw
    uint32_t line = 0;
  };

  // `unit` is the DIE of the unit (the skeleton, of a split unit), `section` its file's
  // .debug_line. `wanted` is sorted and without repetition.
  LineTable(Dwarf_Die* unit, std::string_view section, const CodeRanges& code,
            std::span<const uint64_t> wanted);
  // The row of wanted[i].
  Row At(size_t i) const;
  // Whether the table is damaged. Rows that were found before the damage stay.
  bool damaged() const { return damaged_; }

 private:
  std::vector<LineRow> rows_;
  Dwarf_Files* files_ = nullptr;
  size_t file_count_ = 0;
  bool damaged_ = false;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_LINE_TABLE_H_
