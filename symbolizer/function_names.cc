// FunctionNames. See function_names.h.

#include "symbolizer/function_names.h"

#include <dwarf.h>

#include "symbolizer/demangle.h"

namespace memtrace::symbolizer {
namespace {

// Real chains have three links; a damaged file may have a loop.
constexpr int kMostReferences = 16;

struct Found {
  Dwarf_Attribute linkage_name = {};
  Dwarf_Attribute name = {};
  Dwarf_Attribute origin = {};
  Dwarf_Attribute specification = {};
};

int Collect(Dwarf_Attribute* attribute, void* argument) {
  Found* found = static_cast<Found*>(argument);
  switch (dwarf_whatattr(attribute)) {
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
      found->linkage_name = *attribute;
      break;
    case DW_AT_name:
      found->name = *attribute;
      break;
    case DW_AT_abstract_origin:
      found->origin = *attribute;
      break;
    case DW_AT_specification:
      found->specification = *attribute;
      break;
    default:
      break;
  }
  return DWARF_CB_OK;
}

const char* StringOf(Dwarf_Attribute* attribute) {
  if (attribute->valp == nullptr) return nullptr;
  const char* text = dwarf_formstring(attribute);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

}  // namespace

FunctionNames::RawName FunctionNames::RawOf(Dwarf_Die* die, int depth) {
  const bool shared = depth > 0;  // something points to it: likely asked again
  if (shared) {
    if (auto it = raw_.find(die->addr); it != raw_.end()) return it->second;
  }
  RawName raw;
  Found found;
  if (dwarf_getattrs(die, Collect, &found, 0) == 1) {
    raw.linkage_name = StringOf(&found.linkage_name);
    raw.name = StringOf(&found.name);
    for (Dwarf_Attribute* link : {&found.origin, &found.specification}) {
      Dwarf_Die next;
      if ((raw.linkage_name != nullptr && raw.name != nullptr) || link->valp == nullptr ||
          depth >= kMostReferences || dwarf_formref_die(link, &next) == nullptr) {
        continue;
      }
      const RawName further = RawOf(&next, depth + 1);
      if (raw.linkage_name == nullptr) raw.linkage_name = further.linkage_name;
      if (raw.name == nullptr) raw.name = further.name;
    }
  }
  if (shared) raw_.emplace(die->addr, raw);
  return raw;
}

const FunctionNames::Name& FunctionNames::Of(Dwarf_Die* die) {
  const RawName raw = RawOf(die, 0);
  const auto [it, inserted] = names_.try_emplace(raw);
  if (inserted) {
    Name& name = it->second;
    if (raw.linkage_name != nullptr) name.linkage_name = raw.linkage_name;
    // In C a linkage name is an assembler label ("__GI___libc_malloc") that the
    // source does not know; and not every mangled name can be demangled.
    if (IsMangled(name.linkage_name)) name.function = Demangle(name.linkage_name);
    const bool unread = name.function.empty() || name.function == name.linkage_name;
    if (unread && raw.name != nullptr) name.function = raw.name;
    if (name.function.empty()) name.function = name.linkage_name;
  }
  return it->second;
}

}  // namespace memtrace::symbolizer
