// LineTable. See line_table.h.

#include "symbolizer/line_table.h"

#include <dwarf.h>

namespace memtrace::symbolizer {

LineTable::LineTable(Dwarf_Die* unit, std::string_view section, const CodeRanges& code,
                     std::span<const uint64_t> wanted)
    : rows_(wanted.size()) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  if (dwarf_attr(unit, DW_AT_stmt_list, &attribute) == nullptr) return;
  if (dwarf_formudata(&attribute, &offset) != 0) {
    damaged_ = true;
    return;
  }
  damaged_ = !FindLineRows(section, offset, code, wanted, rows_);
  if (dwarf_getsrcfiles(unit, &files_, &file_count_) != 0) file_count_ = 0;
}

LineTable::Row LineTable::At(size_t i) const {
  const LineRow& row = rows_[i];
  if (!row.found || row.file >= file_count_) return {};
  return {dwarf_filesrc(files_, row.file, nullptr, nullptr), row.line};
}

}  // namespace memtrace::symbolizer
