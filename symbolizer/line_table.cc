// LineTable. See line_table.h.

#include "symbolizer/line_table.h"

#include <algorithm>

namespace memtrace::symbolizer {

LineTable::LineTable(Dwarf_Die* unit) {
  if (dwarf_getsrclines(unit, &lines_, &count_) != 0) count_ = 0;
}

uint64_t LineTable::AddressOf(size_t row) const {
  Dwarf_Addr address = UINT64_MAX;
  dwarf_lineaddr(dwarf_onesrcline(lines_, row), &address);
  return address;
}

LineTable::Row LineTable::Find(uint64_t address) {
  // Double the step until a row lies above the address, then halve: cheap both
  // for neighbours and for a few addresses in a large unit.
  size_t step = 1;
  size_t above = at_;
  while (above < count_ && AddressOf(above) <= address) {
    at_ = above + 1;
    above += step;
    step *= 2;
  }
  above = std::min(above, count_);
  while (at_ < above) {
    const size_t middle = at_ + (above - at_) / 2;
    if (AddressOf(middle) <= address) {
      at_ = middle + 1;
    } else {
      above = middle;
    }
  }
  if (at_ == 0) return {};

  // The last row at or below the address holds, unless code ended there.
  Dwarf_Line* row = dwarf_onesrcline(lines_, at_ - 1);
  bool end_sequence = true;
  if (dwarf_lineendsequence(row, &end_sequence) != 0 || end_sequence) return {};
  Row result;
  int line = 0;
  if (dwarf_lineno(row, &line) == 0 && line > 0) result.line = static_cast<uint32_t>(line);
  result.file = dwarf_linesrc(row, nullptr, nullptr);
  return result;
}

}  // namespace memtrace::symbolizer
