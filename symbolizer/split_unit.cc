#include "symbolizer/split_unit.h"

#include <dwarf.h>
#include <unistd.h>

#include "symbolizer/source_paths.h"

namespace memtrace::symbolizer {

SplitUnit SplitUnit::Of(Dwarf_Die* unit) {
  SplitUnit split;
  uint8_t type = 0;
  if (dwarf_cu_info(unit->cu, nullptr, &type, nullptr, &split.die, nullptr, nullptr, nullptr) !=
          0 ||
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

std::string SplitUnit::Missing(Dwarf_Die* unit) const {
  const std::string file = name == nullptr ? "a .dwo file" : name;
  // Compiled again since; or -gsplit-dwarf=single has left it in the object, beside the skeleton,
  // which libdw takes for all of it.
  if (name != nullptr && access(SourcePaths(unit).Of(name).c_str(), R_OK) == 0) {
    return file +
           " is there, but libdw finds nothing of this program in it"
           " (it is of another build, of -gsplit-dwarf=single, or has type units of gcc's DWARF 5)";
  }
  return file + " was not found";
}

}  // namespace memtrace::symbolizer
