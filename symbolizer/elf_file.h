// ElfFile: one open ELF file, with checks that elfutils leaves to its caller.
//
// Names come from whatever file lies at a path, possibly cut short or damaged,
// so every section is fetched through Section(), which returns an empty view
// for anything that is missing, compressed beyond libelf's means, or outside
// the file. Only little-endian files of a known class are opened.
//
// The views point into memory owned by the ElfFile. Threads: one at a time.

#ifndef MEMTRACE_SYMBOLIZER_ELF_FILE_H_
#define MEMTRACE_SYMBOLIZER_ELF_FILE_H_

#include <gelf.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace memtrace::symbolizer {

// One section, as far as it can be read.
struct ElfSection {
  Elf_Scn* scn = nullptr;
  GElf_Shdr header = {};
  std::string_view name;
  std::string_view data;  // empty for SHT_NOBITS and for unreadable sections
};

class ElfFile {
 public:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };

  // NotFound when there is no such file, FailedPrecondition when it is not an
  // ELF file for us, DataLoss when it is cut short.
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(const std::string& path);
  // The content of .gnu_debugdata: an xz-compressed ELF file. `label` replaces the path.
  static absl::StatusOr<std::unique_ptr<ElfFile>> FromXz(std::string_view compressed,
                                                         const std::string& label);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // A module is an executable or a shared library. (dwz's files are neither.)
  absl::Status CheckLoadable() const;

  Elf* elf() const { return elf_; }
  const std::string& path() const { return path_; }
  const std::string& build_id() const { return build_id_; }  // raw bytes, empty if none
  uint16_t machine() const { return header_.e_machine; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  // mtime, in ns of the wall clock; 0 of no file
  int64_t written_ns() const { return written_ns_; }
  // ctime, likewise: also of a rename, a link, a change of its mode
  int64_t changed_ns() const { return changed_ns_; }

  // `name` with its dot. Data of a compressed section (SHF_COMPRESSED, .zdebug_)
  // is only decompressed by libdw: use it after dwarf_begin_elf() for those.
  ElfSection Section(std::string_view name) const;
  ElfSection SectionOf(Elf_Scn* scn) const;
  std::vector<ElfSection> SectionsOfType(uint32_t type) const;

  bool HasDwarf() const;        // .debug_info with content, plain or compressed
  bool HasSymbolTable() const;  // .symtab with content
  // Where code is: executable sections, or executable segments in a file without sections.
  std::vector<Range> ExecutableRanges() const;
  // Empty name when there is no .gnu_debuglink.
  std::string DebugLink(uint32_t* crc) const;

 private:
  ElfFile(int fd, Elf* elf, std::string path) : fd_(fd), elf_(elf), path_(std::move(path)) {}
  absl::Status Check(uint64_t file_bytes);
  void ReplaceByDecompressed();

  int fd_;
  std::string image_;  // what elf_ reads instead of the file, if not empty
  Elf* elf_;
  std::string path_;
  GElf_Ehdr header_ = {};
  std::string build_id_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  int64_t written_ns_ = 0, changed_ns_ = 0;
};

std::string HexOf(std::string_view bytes);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ELF_FILE_H_
