// DataUnits: which compilation unit a byte of a module belongs to, code and variables alike.
//
// From DWARF, built once, then looked up by address. One thread.

#ifndef MEMTRACE_SYMBOLIZER_DATA_UNITS_H_
#define MEMTRACE_SYMBOLIZER_DATA_UNITS_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/address_map.h"
#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {

class DataUnits {
 public:
  // `file` has DWARF. False: it cannot be read.
  bool Read(const ElfFile& file);

  // The unit's source file; nullptr: no unit is known of this address.
  const std::string* Find(uint64_t address) const {
    const uint32_t* unit = units_.Find(address);
    return unit == nullptr ? nullptr : &names_[*unit];
  }
  // Where what Find() says may change.
  const std::vector<AddressMap<uint32_t>::Segment>& segments() const { return units_.segments(); }

 private:
  void ReadVariables(Dwarf_Die* parent, uint32_t unit, int depth);
  void ReadVariable(Dwarf_Die* die, uint32_t unit);

  std::vector<std::string> names_;
  AddressMap<uint32_t> units_;  // index into names_
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DATA_UNITS_H_
