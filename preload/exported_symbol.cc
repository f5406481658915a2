#include "preload/exported_symbol.h"

#include <sys/auxv.h>

#include <cstdint>
#include <string_view>

namespace memtrace {
namespace {

uint32_t GnuHash(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash;
}

// DT_GNU_HASH: this, then the words of a Bloom filter, the buckets, and for each symbol from
// `first_symbol` on the hash of its name, whose lowest bit ends a bucket.
struct Header {
  uint32_t buckets;
  uint32_t first_symbol;
  uint32_t filter_words;
  uint32_t filter_shift;
};

// The addresses in `dynamic` are `bias` too low: 0 where the loader has relocated them.
const ElfW(Sym)* FindSymbol(const ElfW(Dyn)* dynamic, uintptr_t bias, std::string_view name) {
  const Header* header = nullptr;
  const uint32_t* old_header = nullptr;  // DT_HASH: its second word is the number of symbols
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t address = bias + entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) header = reinterpret_cast<const Header*>(address);
    if (entry->d_tag == DT_HASH) old_header = reinterpret_cast<const uint32_t*>(address);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(address);
  }
  if (symbols == nullptr || strings == nullptr) return nullptr;
  const auto is_it = [&](uint32_t index) {
    return symbols[index].st_shndx != SHN_UNDEF &&
           std::string_view(strings + symbols[index].st_name) == name;
  };
  if (header == nullptr || header->buckets == 0) {
    for (uint32_t i = 1; old_header != nullptr && i < old_header[1]; ++i) {
      if (is_it(i)) return &symbols[i];
    }
    return nullptr;
  }
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(header + 1);
  const auto* buckets = reinterpret_cast<const uint32_t*>(filter + header->filter_words);
  const uint32_t* hashes = buckets + header->buckets;
  const uint32_t hash = GnuHash(name);
  uint32_t index = buckets[hash % header->buckets];
  if (index < header->first_symbol) return nullptr;
  for (;; ++index) {
    const uint32_t found = hashes[index - header->first_symbol];
    if ((found | 1) == (hash | 1) && is_it(index)) return &symbols[index];
    if (found & 1) return nullptr;
  }
}

}  // namespace

bool Exports(const link_map* map, const char* name) {
  return FindSymbol(map->l_ld, 0, name) != nullptr;
}

void* FindInVdso(const char* name) {
  const auto base = static_cast<uintptr_t>(getauxval(AT_SYSINFO_EHDR));
  if (base == 0) return nullptr;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  uintptr_t bias = 0, dynamic = 0;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type == PT_LOAD && bias == 0) bias = base + parts[i].p_offset - parts[i].p_vaddr;
    if (parts[i].p_type == PT_DYNAMIC) dynamic = parts[i].p_vaddr;
  }
  if (bias == 0 || dynamic == 0) return nullptr;
  const ElfW(Sym)* const symbol =
      FindSymbol(reinterpret_cast<const ElfW(Dyn)*>(bias + dynamic), bias, name);
  return symbol == nullptr ? nullptr : reinterpret_cast<void*>(bias + symbol->st_value);
}

}  // namespace memtrace
