// The symbols of a file, one by one.

#ifndef MEMTRACE_SYMBOLIZER_ELF_SYMBOLS_H_
#define MEMTRACE_SYMBOLIZER_ELF_SYMBOLS_H_

#include <gelf.h>

#include <cstdint>
#include <string_view>

#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {

// "read@@GLIBC_2.2.5" is "read". "malloc@plt" has no version: some linkers write such a symbol for
// a stub, which is not what it leads to.
inline std::string_view WithoutVersion(std::string_view name) {
  const size_t at = name.find('@');
  return at == std::string_view::npos || at == 0 || name.ends_with("@plt") ? name
                                                                           : name.substr(0, at);
}

// Calls function(const GElf_Sym&, std::string_view name) for each named symbol in the sections
// of `type` (SHT_SYMTAB, SHT_DYNSYM), those among them that other files define. Versions are not
// part of the name.
template <typename Function>
void ForEachNamedSymbol(const ElfFile& file, uint32_t type, Function function) {
  for (const ElfSection& section : file.SectionsOfType(type)) {
    Elf_Data* data = elf_getdata(section.scn, nullptr);
    if (data == nullptr || section.header.sh_entsize == 0) continue;
    const size_t count = data->d_size / section.header.sh_entsize;
    for (size_t i = 1; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const char* text = elf_strptr(file.elf(), section.header.sh_link, symbol.st_name);
      if (text == nullptr || *text == 0) continue;
      function(symbol, WithoutVersion(text));
    }
  }
}

// The same for those that have a place in the file.
template <typename Function>
void ForEachSymbol(const ElfFile& file, uint32_t type, Function function) {
  ForEachNamedSymbol(file, type, [&](const GElf_Sym& symbol, std::string_view name) {
    if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS) function(symbol, name);
  });
}

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ELF_SYMBOLS_H_
