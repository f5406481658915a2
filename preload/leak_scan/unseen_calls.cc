#include "preload/leak_scan/unseen_calls.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>

#include "preload/leak_scan/scan_words.h"
#include "preload/process.h"
#include "preload/real_allocator.h"
#include "preload/text.h"

namespace memtrace {
namespace {

constexpr size_t kLongestName = 32;  // of those that are looked for

struct Known {
  std::string_view name;
  AllocatorCall call;
};

constexpr AllocatorCall kAllocates = {true, false}, kFrees = {false, true}, kBoth = {true, true};

// The functions by the names that programs call; each allocator has them under a
// name of its own as well.
constexpr Known kFamily[] = {
    {"malloc", kAllocates},         {"calloc", kAllocates},        {"realloc", kBoth},
    {"reallocarray", kBoth},        {"free", kFrees},              {"free_sized", kFrees},
    {"memalign", kAllocates},       {"posix_memalign", kAllocates}, {"aligned_alloc", kAllocates},
    {"valloc", kAllocates},         {"pvalloc", kAllocates},       {"mallocx", kAllocates},
    {"rallocx", kBoth},             {"dallocx", kFrees},           {"sdallocx", kFrees},
    {"cfree", kFrees},              {"zalloc", kAllocates},        {"malloc_aligned", kAllocates},
    {"zalloc_aligned", kAllocates}, {"heap_malloc", kAllocates},   {"heap_calloc", kAllocates},
    {"heap_zalloc", kAllocates},    {"heap_realloc", kBoth},       {"new", kAllocates},
    {"newarray", kAllocates},       {"new_nothrow", kAllocates},   {"new_aligned", kAllocates},
    {"newarray_nothrow", kAllocates},
};
// glibc's, jemalloc's, jemalloc's as Rust has it, tcmalloc's, mimalloc's.
constexpr std::string_view kPrefixes[] = {"__libc_", "je_", "_rjem_", "tc_", "mi_"};
// operator new and new[], with all that they take. What these get back was theirs.
constexpr std::string_view kOperators[] = {"_Znw", "_Zna"};

}  // namespace

AllocatorCall CallByName(std::string_view name) {
  for (const std::string_view prefix : kOperators) {
    if (name.starts_with(prefix)) return kAllocates;
  }
  for (const std::string_view prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    name = From(name, prefix.size());
    break;
  }
  for (const Known& known : kFamily) {
    if (name == known.name) return known.call;
  }
  return {};
}

UnseenCalls::UnseenCalls(const ScanMappings& mappings, VtableTest& files)
    : mappings_(mappings), files_(files) {
  // It was found long ago, or there is nothing to be looked for: the loader is not asked here.
  uintptr_t begin = 0;
  size_t bytes = 0;
  RealAllocatorModule(&begin, &bytes);
  if (reinterpret_cast<uintptr_t>(&g_process) - begin < bytes) return;
  allocator_begin_ = begin;
  allocator_bytes_ = bytes;
}

// A file may end before its mapping does: so the kernel is asked whether the page can be read.
bool UnseenCalls::FindReadable(uintptr_t address, size_t bytes, Readable& last) {
  const ScanMapping* const mapping = mappings_.Find(address);
  if (mapping == nullptr || (mapping->protection & PROT_READ) == 0 ||
      mapping->end - address < bytes)
    return false;
  if (!mapping->file) {
    last = {mapping->begin, mapping->end};
    return true;
  }
  if (!files_.CanLoad(address, bytes)) return false;
  last = {Down(address, kPage), Down(address + bytes - 1, kPage) + kPage};
  return true;
}

// DT_GNU_HASH: the second word is the index of the first symbol that it has, and it has what is
// defined. Of a module that defines nothing ld writes 1 there.
size_t UnseenCalls::ForeignIn(const uint32_t* hash_table) {
  Readable readable;
  if (!IsReadable(reinterpret_cast<uintptr_t>(hash_table), 2 * sizeof(uint32_t), readable))
    return SIZE_MAX;
  return hash_table[1] > 1 ? hash_table[1] : SIZE_MAX;
}

AllocatorCall UnseenCalls::CallsOf(const link_map& map, uintptr_t* begin, uintptr_t* end) {
  const auto dynamic = reinterpret_cast<uintptr_t>(map.l_ld);
  dl_find_object object;
  Readable readable;
  if (!CanLoad(map.l_ld, readable) ||
      _dl_find_object(reinterpret_cast<void*>(dynamic), &object) != 0)
    return {};
  *begin = reinterpret_cast<uintptr_t>(object.dlfo_map_start);
  *end = reinterpret_cast<uintptr_t>(object.dlfo_map_end);
  const auto is_of_module = [&](uintptr_t address) { return address >= *begin && address < *end; };
  // Ours and the allocator's own calls are their business.
  if (is_of_module(allocator_begin_) || is_of_module(reinterpret_cast<uintptr_t>(&g_process)))
    return {};
  Symbols symbols;
  // Of functions; of all else, of which those without a name come first.
  const ElfW(Rela)* slots[2] = {};
  size_t bytes[2] = {}, relative = 0;
  for (const ElfW(Dyn)* entry = map.l_ld; CanLoad(entry, readable) && entry->d_tag != DT_NULL;
       ++entry) {
    const uintptr_t value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) symbols.table = reinterpret_cast<const ElfW(Sym)*>(value);
    if (entry->d_tag == DT_STRTAB) symbols.names = reinterpret_cast<const char*>(value);
    if (entry->d_tag == DT_GNU_HASH)
      symbols.foreign = ForeignIn(reinterpret_cast<const uint32_t*>(value));
    if (entry->d_tag == DT_JMPREL) slots[0] = reinterpret_cast<const ElfW(Rela)*>(value);
    if (entry->d_tag == DT_PLTRELSZ) bytes[0] = value;
    if (entry->d_tag == DT_RELA) slots[1] = reinterpret_cast<const ElfW(Rela)*>(value);
    if (entry->d_tag == DT_RELASZ) bytes[1] = value;
    if (entry->d_tag == DT_RELACOUNT) relative = value;
  }
  AllocatorCall calls;
  if (symbols.table == nullptr || symbols.names == nullptr) return calls;
  if (slots[1] != nullptr && relative <= bytes[1] / sizeof(ElfW(Rela))) {
    slots[1] += relative;
    bytes[1] -= relative * sizeof(ElfW(Rela));
  }
  for (const int i : {0, 1}) {
    if (slots[i] != nullptr)
      LookAt(slots[i], bytes[i], /*of_calls=*/i == 0, symbols, map.l_addr, &calls);
  }
  return calls;
}

// A large module has 50,000 of them (virtual functions of its own, mostly), and few
// that are of interest.
void UnseenCalls::LookAt(const ElfW(Rela) * slots, size_t bytes, bool of_calls,
                         const Symbols& symbols, uintptr_t bias, AllocatorCall* calls) {
  Readable in_table, in_slots, in_symbols, in_names;
  for (size_t i = 0; i < bytes / sizeof(*slots) && CanLoad(&slots[i], in_table); ++i) {
    const size_t index = ELF64_R_SYM(slots[i].r_info);
    // libstdc++ has the address of its own operator new, and need not call it.
    if (index == 0 || slots[i].r_addend != 0 || (!of_calls && index >= symbols.foreign)) continue;
    const auto* const slot = reinterpret_cast<const uintptr_t*>(bias + slots[i].r_offset);
    if (!CanLoad(slot, in_slots) || *slot - allocator_begin_ >= allocator_bytes_) continue;
    const ElfW(Sym)* const symbol = &symbols.table[index];
    if (!CanLoad(symbol, in_symbols) || (!of_calls && symbol->st_shndx != SHN_UNDEF)) continue;
    const char* const name = symbols.names + symbol->st_name;
    // Strings are not the last of a file; a name that ends with it is none of these.
    if (!IsReadable(reinterpret_cast<uintptr_t>(name), kLongestName, in_names)) continue;
    const auto* const name_end = std::find(name, name + kLongestName, '\0');
    const AllocatorCall call = CallByName({name, static_cast<size_t>(name_end - name)});
    calls->allocates |= call.allocates;
    calls->frees |= call.frees;
  }
}

}  // namespace memtrace
