// SymbolTable: the function symbols of a module as one sorted table.
//
// Built from .symtab of the module or its debug file, .dynsym, and the symbols
// in .gnu_debugdata, whichever exist; then looked up by address.
//
//   sized symbols win over symbols of size zero, which reach to the next symbol
//   functions win over untyped symbols, the last resort for assembly
//   among names of one address: public (global or weak) before local; fewer
//   leading underscores; the shorter; the alphabetically first. So it is
//   "malloc", not "__libc_malloc", and the weak "calloc", not "__libc_calloc".
//
// Names have their version stripped ("read@@GLIBC_2.2.5" is "read").
// Names are copied: the table outlives the file it came from.

#ifndef MEMTRACE_SYMBOLIZER_SYMBOL_TABLE_H_
#define MEMTRACE_SYMBOLIZER_SYMBOL_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/address_map.h"
#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {

class SymbolTable {
 public:
  struct Symbol {
    std::string name;
    uint64_t address;
    uint64_t size;
    uint8_t rank;  // lower is better: type, then visibility

    bool IsPublicFunction() const { return rank == 0; }
    bool IsLocalFunction() const { return rank == 1; }
  };

  // Adds every function symbol of the sections of `type` (SHT_SYMTAB, SHT_DYNSYM).
  void AddFrom(const ElfFile& file, uint32_t type);
  // Call once after the last AddFrom(). Symbols outside `code` are dropped, and
  // a symbol of size zero ends with its range of code.
  void Build(const std::vector<ElfFile::Range>& code);

  // Null when no symbol covers the address.
  const Symbol* Find(uint64_t address) const;
  // The names of all symbols that begin here: aliases, and functions that a linker has folded.
  std::vector<std::string_view> NamesAt(uint64_t address) const;
  // Whether `name` is a function of this file alone that begins here.
  bool HasLocalFunction(uint64_t address, std::string_view name) const;
  // Is there one whose name begins so? Looks at all of them.
  bool HasNamesThatBegin(std::string_view with) const;
  bool empty() const { return symbols_.empty(); }

 private:
  std::vector<Symbol>::const_iterator FirstAt(uint64_t address) const;

  std::vector<Symbol> symbols_;
  AddressMap<uint32_t> sized_;    // index into symbols_
  AddressMap<uint32_t> unsized_;  // index into symbols_
};

// Is `a` the better name for the same address and size?
bool IsBetterName(const SymbolTable::Symbol& a, const SymbolTable::Symbol& b);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SYMBOL_TABLE_H_
