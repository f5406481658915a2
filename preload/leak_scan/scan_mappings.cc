#include "preload/leak_scan/scan_mappings.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "preload/leak_scan/block_places.h"
#include "preload/leak_scan/scan_words.h"
#include "preload/own_proc.h"
#include "preload/proc_text.h"
#include "preload/scan_hints.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

using format::ScanRegionKind;

bool IsDevice(std::string_view path) {
  if (path.starts_with("anon_inode:") || path.starts_with("socket:")) return true;
  return path.starts_with("/dev/") && !path.starts_with("/dev/zero") &&
         !path.starts_with("/dev/shm/");
}

// Memory that the program has written and then protected is no root, as for memcheck, but what
// libc gave out there is a block all the same, and leads to others; and where the program says that
// it is a root, it is.
bool MayHaveBlocks(const ScanMapping& mapping) {
  if (mapping.end > kAddresses) return false;
  bool may = false;
  ForEachBlockPlace(mapping.begin, mapping.end,
                    [&](uintptr_t begin, uintptr_t end) { may |= begin < end; });
  return may;
}

bool HasRootRegion(const ScanMapping& mapping) {
  bool has = false;
  g_scan_hints.ForEachRoot([&](uintptr_t begin, uintptr_t end) {
    has |= begin < mapping.end && end > mapping.begin;
  });
  return has;
}

}  // namespace

bool ScanMappings::ReadText() {
  for (size_t capacity = 256 << 10; capacity <= size_t{256} << 20; capacity *= 4) {
    char* const text = arena_.Array<char>(capacity);
    if (text == nullptr) return false;
    const long bytes =
        ReadOwnProc("maps", [&](const char* path) { return sys::ReadFile(path, text, capacity); });
    if (bytes <= 0) {
      error_ = bytes;
      return false;
    }
    if (static_cast<size_t>(bytes) < capacity) {
      text_ = {text, static_cast<size_t>(bytes)};
      return true;
    }
  }
  return false;
}

bool ScanMappings::Parse() {
  if (!text_.ends_with('\n')) return false;
  std::string_view rest = text_, line;
  while (TakeLine(rest, &line)) {
    MapLine map;
    if (!ParseMapLine(line, &map)) return false;
    ScanMapping mapping;
    mapping.begin = map.begin;
    mapping.end = map.end;
    if (map.permissions[0] == 'r') mapping.protection |= PROT_READ;
    if (map.permissions[1] == 'w') mapping.protection |= PROT_WRITE;
    if (map.permissions[2] == 'x') mapping.protection |= PROT_EXEC;
    mapping.shared = map.permissions[3] == 's';
    mapping.offset = map.offset;
    mapping.file = map.inode != 0;
    mapping.path = map.path;
    // glibc's blocks in huge pages (GLIBC_TUNABLES=glibc.malloc.hugetlb=2) have a
    // file that nobody has.
    if (!mapping.shared && mapping.path == "/anon_hugepage (deleted)") mapping.file = false;
    if (!all_.Add(mapping)) return false;
  }
  return all_.size() != 0;
}

// An anonymous mapping may be the .bss of the module before it and, merged with that by the
// kernel, something else behind it: it is parted where the module ends. Without randomized
// addresses that may be the heap, and all of it is then called [heap].
bool ScanMappings::Classify() {
  ScanArray<ScanMapping> parted(arena_);
  for (size_t i = 0; i < all_.size(); ++i) {
    ScanMapping mapping = all_[i];
    const bool readable = (mapping.protection & PROT_READ) != 0;
    const bool writable = (mapping.protection & PROT_WRITE) != 0;
    using Part = ScanMapping::Part;
    mapping.part = readable && writable ? Part::kRead : Part::kNone;
    dl_find_object object;
    const bool heap = mapping.path == "[heap]";
    const bool of_module = (mapping.file || mapping.path.empty() || heap) && !mapping.shared &&
                           _dl_find_object(reinterpret_cast<void*>(mapping.begin), &object) == 0;
    if (mapping.path == "[vvar]" || mapping.path == "[vvar_vclock]" || mapping.path == "[vdso]" ||
        mapping.path == "[vsyscall]") {
      mapping.part = Part::kNone;
    } else if (mapping.shared) {
      mapping.kind = ScanRegionKind::kShared;
    } else if (heap && !of_module) {
      mapping.kind = ScanRegionKind::kHeap;
      if (readable) mapping.part = Part::kRead;
    } else if (mapping.path == "[stack]") {
      mapping.kind = ScanRegionKind::kStack;
    } else if (mapping.file && of_module) {
      mapping.kind = writable ? ScanRegionKind::kModuleData : ScanRegionKind::kRelro;
      // In a mapping that is not writable, pages that were written once are read:
      // relocated, then protected.
      if (readable && !writable && (mapping.protection & PROT_EXEC) == 0)
        mapping.part = Part::kRead;
    } else if (mapping.file) {
      mapping.kind = ScanRegionKind::kFile;
    } else if (of_module) {
      mapping.kind = ScanRegionKind::kModuleData;
      mapping.path = {};
      for (size_t before = i; before-- > 0 && mapping.path.empty();)
        mapping.path = all_[before].path;
      const auto module_end = reinterpret_cast<uintptr_t>(object.dlfo_map_end);
      const uintptr_t end = (module_end + arch::kPageBytes - 1) & ~(arch::kPageBytes - 1);
      if (end < mapping.end) {
        ScanMapping rest = mapping;
        rest.path = all_[i].path;
        rest.begin = mapping.end = end;
        rest.kind = heap ? ScanRegionKind::kHeap : ScanRegionKind::kAnonymous;
        if (!parted.Add(mapping)) return false;
        mapping = rest;
      }
    } else {
      mapping.kind = ScanRegionKind::kAnonymous;
      if (readable && (MayHaveBlocks(mapping) || HasRootRegion(mapping)))
        mapping.part = Part::kRead;
    }
    if (mapping.part == Part::kRead && IsDevice(mapping.path)) mapping.part = Part::kNotRead;
    if (!parted.Add(mapping)) return false;
  }
  all_ = parted;
  return true;
}

bool ScanMappings::Read() { return ReadText() && Parse() && Classify(); }

const ScanMapping* ScanMappings::Find(uintptr_t address) const {
  size_t low = 0, high = all_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (all_[middle].end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < all_.size() && all_[low].begin <= address ? &all_[low] : nullptr;
}

}  // namespace memtrace
