#include "symbolizer/split_unit.h"

#include <dwarf.h>

namespace memtrace::symbolizer {

SplitUnit SplitUnit::Of(Dwarf_Die* unit) {
  SplitUnit split;
  uint8_t type = 0;
  if (dwarf_cu_info(unit->cu, nullptr, &type, nullptr, &split.die, nullptr, nullptr, nullptr) != 0 ||
      type != DW_UT_skeleton) {
    return {};
  }
  split.is_split = true;
  split.found = dwarf_tag(&split.die) != DW_TAG_invalid;
  Dwarf_Attribute attribute;
  if (dwarf_attr(unit, DW_AT_dwo_name, &attribute) != nullptr ||
      dwarf_attr(unit, DW_AT_GNU_dwo_name, &attribute) != nullptr) {
    split.name = dwarf_formstring(&attribute);
  }
  return split;
}

}  // namespace memtrace::symbolizer
