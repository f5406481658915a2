// LineTable: the file and line of addresses of one unit, asked in rising order.
//
// libdw decodes the unit's line program once, sorted by address; the addresses
// come sorted too, so the search goes on where the last one ended.
//
// Line 0 is a statement of the compiler ("no line of the source made this
// code"), and is passed on: the file is named and the line stays unknown.

#ifndef MEMTRACE_SYMBOLIZER_LINE_TABLE_H_
#define MEMTRACE_SYMBOLIZER_LINE_TABLE_H_

#include <elfutils/libdw.h>

#include <cstdint>

namespace memtrace::symbolizer {

class LineTable {
 public:
  struct Row {
    const char* file = nullptr;  // null when not known; belongs to libdw
    uint32_t line = 0;
  };

  // `unit` is the DIE of the unit (the skeleton, of a split unit).
  explicit LineTable(Dwarf_Die* unit);
  // Each address must not be below the one before.
  Row Find(uint64_t address);

 private:
  uint64_t AddressOf(size_t row) const;

  Dwarf_Lines* lines_ = nullptr;
  size_t count_ = 0;
  size_t at_ = 0;  // rows below are at or below the last address
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_LINE_TABLE_H_
