#include "symbolizer/alternate_file.h"

#include <elfutils/libdwelf.h>

namespace memtrace::symbolizer {

AlternateFile::AlternateFile(Dwarf* dwarf, const ElfFile& file, const DebugFileFinder& finder) {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
  if (id_bytes <= 0 || name == nullptr || id == nullptr) return;
  const std::string build_id(static_cast<const char*>(id), static_cast<size_t>(id_bytes));
  file_ = finder.FindAlternate(file, name, build_id);
  if (file_ == nullptr) {
    missing_ = name;
    return;
  }
  dwarf_ = dwarf_begin_elf(file_->elf(), DWARF_C_READ, nullptr);
  if (dwarf_ != nullptr) dwarf_setalt(dwarf, dwarf_);
}

AlternateFile::~AlternateFile() {
  if (dwarf_ != nullptr) dwarf_end(dwarf_);
}

}  // namespace memtrace::symbolizer
