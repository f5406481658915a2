#include "symbolizer/data_units.h"

#include <dwarf.h>

#include "symbolizer/source_paths.h"

namespace memtrace::symbolizer {
namespace {

// No language nests scopes deeper; a damaged file may.
constexpr int kDeepestScope = 64;

bool IsScope(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_module || tag == DW_TAG_common_block;
}

uint64_t SizeOf(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (dwarf_attr_integrate(die, DW_AT_type, &attribute) == nullptr ||
      dwarf_formref_die(&attribute, &type) == nullptr) {
    return 0;
  }
  Dwarf_Word bytes = 0;
  return dwarf_aggregate_size(&type, &bytes) == 0 ? bytes : 0;
}

}  // namespace

bool DataUnits::Read(const ElfFile& file) {
  Dwarf* const dwarf = dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr);
  if (dwarf == nullptr) return false;
  Dwarf_Off next = 0;
  size_t header_bytes = 0;
  for (Dwarf_Off offset = 0;
       dwarf_nextcu(dwarf, offset, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
       next > offset;
       offset = next) {
    Dwarf_Die die;
    if (dwarf_offdie(dwarf, offset + header_bytes, &die) == nullptr) continue;
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) continue;
    const char* name = dwarf_diename(&die);
    const auto unit = static_cast<uint32_t>(names_.size());
    SourcePaths paths(&die);
    names_.push_back(name == nullptr ? "" : paths.Of(name));
    Dwarf_Addr base, begin, end;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
      if (begin != 0) units_.Add(begin, end, unit);  // 0: the linker left it out
    }
    ReadVariables(&die, unit, 0);
  }
  units_.Build();
  dwarf_end(dwarf);
  return true;
}

void DataUnits::ReadVariables(Dwarf_Die* parent, uint32_t unit, int depth) {
  Dwarf_Die die;
  if (depth > kDeepestScope || dwarf_child(parent, &die) != 0) return;
  do {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_variable) {
      ReadVariable(&die, unit);
    } else if (IsScope(tag)) {
      ReadVariables(&die, unit, depth + 1);
    }
  } while (dwarf_siblingof(&die, &die) == 0);
}

void DataUnits::ReadVariable(Dwarf_Die* die, uint32_t unit) {
  Dwarf_Attribute attribute;
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_attr(die, DW_AT_location, &attribute) == nullptr ||
      dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1 ||
      ops[0].atom != DW_OP_addr || ops[0].number == 0) {
    return;
  }
  const uint64_t begin = ops[0].number, bytes = SizeOf(die);
  if (bytes != 0 && begin + bytes > begin) units_.Add(begin, begin + bytes, unit);
}

}  // namespace memtrace::symbolizer
