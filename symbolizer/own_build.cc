#include "symbolizer/own_build.h"

#include <elf.h>
#include <link.h>

#include <string_view>

#include "format/build_id_note.h"

namespace memtrace::symbolizer {
namespace {

// The executable is the first that is told of.
int ReadFirst(struct dl_phdr_info* info, size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const std::string_view id =
        format::BuildIdIn({reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr),
                           segment.p_memsz},
                          segment.p_align);
    if (id.empty()) continue;
    static_cast<std::string*>(result)->assign(id);
    break;
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
