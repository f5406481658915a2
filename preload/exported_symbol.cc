#include "preload/exported_symbol.h"

#include <cstdint>
#include <string_view>

namespace memtrace {
namespace {

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
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

}  // namespace

bool Exports(const link_map* map, const char* name) {
  const Header* header = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_GNU_HASH) header = reinterpret_cast<const Header*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  if (header == nullptr || symbols == nullptr || strings == nullptr || header->buckets == 0) {
    return false;
  }
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(header + 1);
  const auto* buckets = reinterpret_cast<const uint32_t*>(filter + header->filter_words);
  const uint32_t* hashes = buckets + header->buckets;
  const uint32_t hash = GnuHash(name);
  uint32_t index = buckets[hash % header->buckets];
  if (index < header->first_symbol) return false;
  for (;; ++index) {
    const uint32_t found = hashes[index - header->first_symbol];
    if ((found | 1) == (hash | 1) && symbols[index].st_shndx != SHN_UNDEF &&
        std::string_view(strings + symbols[index].st_name) == name) {
      return true;
    }
    if (found & 1) return false;
  }
}

}  // namespace memtrace
