// The relocations of a file that hold when it is loaded, one by one.

#ifndef MEMTRACE_SYMBOLIZER_ELF_RELOCATIONS_H_
#define MEMTRACE_SYMBOLIZER_ELF_RELOCATIONS_H_

#include <gelf.h>

#include <string_view>

#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"

namespace memtrace::symbolizer {

// Calls function(const ElfSection&, const GElf_Rela&, std::string_view symbol) for each of them.
// `symbol`: what it is of, without a version; empty: of nothing that has a name.
template <typename Function>
void ForEachRelocation(const ElfFile& file, Function function) {
  for (const ElfSection& section : file.SectionsOfType(SHT_RELA)) {
    if ((section.header.sh_flags & SHF_ALLOC) == 0 || section.header.sh_entsize == 0) continue;
    Elf_Data* const data = elf_getdata(section.scn, nullptr);
    if (data == nullptr) continue;
    // sh_link of a static program's .rela.plt is 0: it has only IFUNCs.
    Elf_Scn* const symbols_scn = elf_getscn(file.elf(), section.header.sh_link);
    GElf_Shdr symbols;
    Elf_Data* symbol_data = nullptr;
    if (symbols_scn != nullptr && gelf_getshdr(symbols_scn, &symbols) != nullptr &&
        (symbols.sh_type == SHT_DYNSYM || symbols.sh_type == SHT_SYMTAB)) {
      symbol_data = elf_getdata(symbols_scn, nullptr);
    }
    const size_t count = data->d_size / section.header.sh_entsize;
    for (size_t i = 0; i < count; ++i) {
      GElf_Rela rela;
      if (gelf_getrela(data, static_cast<int>(i), &rela) == nullptr) break;
      GElf_Sym symbol;
      const char* name = nullptr;
      if (symbol_data != nullptr && GELF_R_SYM(rela.r_info) != 0 &&
          gelf_getsym(symbol_data, static_cast<int>(GELF_R_SYM(rela.r_info)), &symbol) != nullptr) {
        name = elf_strptr(file.elf(), symbols.sh_link, symbol.st_name);
      }
      function(section, rela, name == nullptr ? std::string_view() : WithoutVersion(name));
    }
  }
}

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ELF_RELOCATIONS_H_
