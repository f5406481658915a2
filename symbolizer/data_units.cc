#include "symbolizer/data_units.h"

#include <dwarf.h>

#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/alternate_file.h"
#include "symbolizer/dwarf_attributes.h"
#include "symbolizer/source_paths.h"
#include "symbolizer/split_unit.h"

namespace memtrace::symbolizer {
namespace {

// No language nests scopes deeper; a damaged file may.
constexpr int kDeepestScope = 64;
constexpr std::string_view kLinkTimeUnit = "<artificial>";  // gcc -flto

bool IsScope(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_module || tag == DW_TAG_common_block;
}

bool IsType(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_enumeration_type;
}

// The bytes of a type; 0: not known.
uint64_t SizeOfType(Dwarf_Die* type, int depth) {
  Dwarf_Word bytes = 0;
  if (dwarf_aggregate_size(type, &bytes) == 0) return bytes;
  // libdw knows no bounds of arrays in the file that `dwz -m` makes, whose units have no language.
  // What has such files is C and C++, where they begin at 0.
  Dwarf_Die plain, element, range;
  if (depth > kDeepestScope || dwarf_peel_type(type, &plain) != 0 ||
      dwarf_tag(&plain) != DW_TAG_array_type || !TypeOf(&plain, &element) ||
      dwarf_child(&plain, &range) != 0) {
    return 0;
  }
  bytes = SizeOfType(&element, depth + 1);
  do {
    Dwarf_Word count = 0, last = 0, factor = 0;
    if (dwarf_tag(&range) != DW_TAG_subrange_type) continue;
    if (NumberOf(&range, DW_AT_count, &count)) {
      factor = count;
    } else if (NumberOf(&range, DW_AT_upper_bound, &last)) {
      factor = last + 1;
    }
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return 0;
  } while (dwarf_siblingof(&range, &range) == 0);
  return bytes;
}

uint64_t SizeOf(Dwarf_Die* variable) {
  Dwarf_Die type;
  return TypeOf(variable, &type) ? SizeOfType(&type, 0) : 0;
}

// The address that a location expression gives if it is one address; 0: it is another
// expression. The address is in it, or in a table of the file that was linked: DWARF 5 of
// clang, and .dwo files.
uint64_t AddressOf(Dwarf_Attribute* location) {
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_getlocation(location, &ops, &count) != 0 || count != 1) return 0;
  if (ops[0].atom == DW_OP_addr) return ops[0].number;
  if (ops[0].atom != DW_OP_addrx && ops[0].atom != DW_OP_GNU_addr_index) return 0;
  Dwarf_Attribute in_table;
  Dwarf_Addr address = 0;
  return dwarf_getlocation_attr(location, ops, &in_table) == 0 &&
                 dwarf_formaddr(&in_table, &address) == 0
             ? address
             : 0;
}

// The unit's own file, as its line table has it: the first. (That of a skeleton unit stays
// when its .dwo is gone.)
const char* FirstFile(Dwarf_Die* unit) {
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  return dwarf_getsrcfiles(unit, &files, &count) == 0 && count > 1
             ? dwarf_filesrc(files, 1, nullptr, nullptr)
             : nullptr;
}

}  // namespace

bool DataUnits::Read(const ElfFile& file, const DebugFileFinder& finder) {
  Dwarf* const dwarf = dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr);
  if (dwarf == nullptr) return false;
  const AlternateFile alternate(dwarf, file, finder);
  if (!alternate.missing().empty()) {
    note_ = absl::StrCat(file.path(), ": its supplementary file ", alternate.missing(),
                         " was not found; some variables are of no source");
  }
  Dwarf_Off next = 0;
  size_t header_bytes = 0;
  for (Dwarf_Off offset = 0;
       dwarf_nextcu(dwarf, offset, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
       next > offset;
       offset = next) {
    Dwarf_Die die;
    if (dwarf_offdie(dwarf, offset + header_bytes, &die) == nullptr) continue;
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit) ReadUnit(&die, file.path());
  }
  sources_.Build();
  dwarf_end(dwarf);
  return true;
}

void DataUnits::ReadUnit(Dwarf_Die* die, const std::string& path) {
  SplitUnit split = SplitUnit::Of(die);
  Dwarf_Die* const entries = split.found ? &split.die : die;
  const char* name = dwarf_diename(entries);
  if (split.is_split && !split.found) {
    if (name == nullptr) name = FirstFile(die);
    if (note_.empty()) {
      note_ = absl::StrCat(path, ": ", split.Missing(die), "; its variables are of no source");
    }
  }
  Unit unit{.name = NameOfUnit(die, name), .die = die};
  if (name != nullptr && name == kLinkTimeUnit) {
    unit.owner = Unit::kOrigin;
    unit.name = Intern("");
  } else if (dwarf_srclang(entries) == DW_LANG_Rust) {
    unit.owner = Unit::kDeclaration;
  }
  Dwarf_Addr base, begin, end;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;) {
    if (begin != 0) sources_.Add(begin, end, unit.name);  // 0: the linker left it out
  }
  ReadScope(entries, unit, 0);
}

void DataUnits::ReadScope(Dwarf_Die* parent, const Unit& unit, int depth) {
  Dwarf_Die die;
  if (depth > kDeepestScope || dwarf_child(parent, &die) != 0) return;
  do {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_variable) {
      ReadVariable(&die, unit);
      continue;
    }
    // Rust has its methods, and their static variables, within types.
    if (!IsScope(tag) && !(unit.owner != Unit::kUnit && IsType(tag))) continue;
    if (tag == DW_TAG_subprogram && unit.owner != Unit::kUnit) {
      Dwarf_Addr base, begin, end;
      const uint32_t source = SourceOf(&die, unit);
      for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
        if (begin != 0) sources_.Add(begin, end, source);
      }
    }
    ReadScope(&die, unit, depth + 1);
  } while (dwarf_siblingof(&die, &die) == 0);
}

void DataUnits::ReadVariable(Dwarf_Die* die, const Unit& unit) {
  Dwarf_Attribute attribute;
  if (dwarf_attr(die, DW_AT_location, &attribute) == nullptr) return;
  const uint64_t begin = AddressOf(&attribute);
  const uint64_t bytes = begin == 0 ? 0 : SizeOf(die);
  if (bytes != 0 && begin + bytes > begin) sources_.Add(begin, begin + bytes, SourceOf(die, unit));
}

uint32_t DataUnits::SourceOf(Dwarf_Die* die, const Unit& unit) {
  if (unit.owner == Unit::kUnit) return unit.name;
  if (unit.owner == Unit::kDeclaration) {
    const char* file = dwarf_decl_file(die);
    if (file == nullptr) return unit.name;
    const auto [at, is_new] = by_file_.try_emplace(file, 0);
    if (is_new) at->second = NameOfUnit(unit.die, file);
    return at->second;
  }
  Dwarf_Die from = *die;
  for (int i = 0; i < 4 && FollowOrigin(&from); ++i) {  // a clone's origin has one itself
  }
  Dwarf_Die of;
  if (dwarf_diecu(&from, &of, nullptr, nullptr) == nullptr) return unit.name;
  const auto known = by_unit_.find(of.addr);
  if (known != by_unit_.end()) return known->second;
  const char* name = dwarf_diename(&of);
  const uint32_t found =
      name == nullptr || name == kLinkTimeUnit ? unit.name : NameOfUnit(&of, name);
  by_unit_.emplace(of.addr, found);
  return found;
}

uint32_t DataUnits::NameOfUnit(Dwarf_Die* unit, const char* name) {
  if (name == nullptr) return Intern("");
  std::string path = SourcePaths(unit).Of(name);
  // rustc names its units after the crate's file and the part that they are:
  // "src/lib.rs/@/abc-cgu.0".
  if (const size_t part = path.find("/@/");
      part != std::string::npos && absl::EndsWith(path.substr(0, part), ".rs")) {
    path.resize(part);
  }
  return Intern(std::move(path));
}

uint32_t DataUnits::Intern(std::string name) {
  const auto [at, is_new] =
      by_name_.try_emplace(std::move(name), static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(at->first);
  return at->second;
}

}  // namespace memtrace::symbolizer
