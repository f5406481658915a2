#include "symbolizer/own_build.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace memtrace::symbolizer {
namespace {

size_t Aligned(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// The executable is the first that is told of.
int ReadFirst(struct dl_phdr_info* info, size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof(note));
      const char* const name = at + sizeof(note);
      const char* const text = name + Aligned(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        static_cast<std::string*>(result)->assign(text, note.n_descsz);
        return 1;
      }
      at = text + Aligned(note.n_descsz);
    }
  }
  return 1;
}

}  // namespace

const std::string& OwnBuildId() {
  static const std::string id = [] {
    std::string bytes;
    dl_iterate_phdr(ReadFirst, &bytes);
    return bytes;
  }();
  return id;
}

}  // namespace memtrace::symbolizer
