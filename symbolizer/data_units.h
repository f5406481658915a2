// DataUnits: which source a byte of a module belongs to, code and variables alike: that of
// its compilation unit. Two kinds of units are none of a source: of what gcc -flto put
// together each entry has the unit that it came from, and of a whole crate of Rust the file
// in which it is declared.
//
// From DWARF, built once, then looked up by address. One thread.

#ifndef MEMTRACE_SYMBOLIZER_DATA_UNITS_H_
#define MEMTRACE_SYMBOLIZER_DATA_UNITS_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/address_map.h"
#include "symbolizer/debug_file_finder.h"
#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {

class DataUnits {
 public:
  // `file` has DWARF. False: it cannot be read.
  bool Read(const ElfFile& file, const DebugFileFinder& finder);

  // The source file; nullptr: no unit is known of this address.
  const std::string* Find(uint64_t address) const {
    const uint32_t* name = sources_.Find(address);
    return name == nullptr ? nullptr : &names_[*name];
  }
  // Where what Find() says may change.
  const std::vector<AddressMap<uint32_t>::Segment>& segments() const { return sources_.segments(); }
  // A file that was named and not found, of which there is less to know; for a
  // person. Mostly empty.
  const std::string& note() const { return note_; }

 private:
  struct Unit {
    uint32_t name = 0;         // into names_
    enum Owner { kUnit, kOrigin, kDeclaration } owner = kUnit;
    Dwarf_Die* die = nullptr;  // with the compilation directory
  };

  void ReadUnit(Dwarf_Die* die, const std::string& path);
  void ReadScope(Dwarf_Die* parent, const Unit& unit, int depth);
  void ReadVariable(Dwarf_Die* die, const Unit& unit);
  uint32_t SourceOf(Dwarf_Die* die, const Unit& unit);
  uint32_t NameOfUnit(Dwarf_Die* unit, const char* name);
  uint32_t Intern(std::string name);

  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, uint32_t> by_name_;
  // Dwarf_Die::addr of units that others came from.
  absl::flat_hash_map<const void*, uint32_t> by_unit_;
  absl::flat_hash_map<const char*, uint32_t> by_file_;  // libdw's names of files
  AddressMap<uint32_t> sources_;                        // indices into names_
  std::string note_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DATA_UNITS_H_
