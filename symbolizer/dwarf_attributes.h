// What attributes of a DIE say, those of the DIE it was made from included.

#ifndef MEMTRACE_SYMBOLIZER_DWARF_ATTRIBUTES_H_
#define MEMTRACE_SYMBOLIZER_DWARF_ATTRIBUTES_H_

#include <dwarf.h>
#include <elfutils/libdw.h>

namespace memtrace::symbolizer {

inline bool TypeOf(Dwarf_Die* die, Dwarf_Die* type) {
  Dwarf_Attribute attribute;
  return dwarf_attr_integrate(die, DW_AT_type, &attribute) != nullptr &&
         dwarf_formref_die(&attribute, type) != nullptr;
}

inline bool NumberOf(Dwarf_Die* die, unsigned name, Dwarf_Word* number) {
  Dwarf_Attribute attribute;
  return dwarf_attr_integrate(die, name, &attribute) != nullptr &&
         dwarf_formudata(&attribute, number) == 0;
}

// The next of abstract origins and specifications. False, and `die` stays: there is none.
inline bool FollowOrigin(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die next;
  if ((dwarf_attr(die, DW_AT_abstract_origin, &attribute) == nullptr &&
       dwarf_attr(die, DW_AT_specification, &attribute) == nullptr) ||
      dwarf_formref_die(&attribute, &next) == nullptr) {
    return false;
  }
  *die = next;
  return true;
}

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DWARF_ATTRIBUTES_H_
