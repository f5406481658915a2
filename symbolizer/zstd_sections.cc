// DecompressZstdSections(). See zstd_sections.h.

#include "symbolizer/zstd_sections.h"

#include <gelf.h>
#include <zstd.h>

#include <cstring>

namespace memtrace::symbolizer {
namespace {

constexpr uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, not yet in every elf.h
// Debug information shrinks to a third or a tenth. A header that claims more than
// this is damaged, and must not make us ask for that much memory.
constexpr uint64_t kMaxRatio = 1024;

// Header of the compressed section in `scn`, if zstd compressed it.
bool ReadZstdHeader(Elf_Scn* scn, GElf_Shdr* section, Elf64_Chdr* header) {
  if (gelf_getshdr(scn, section) == nullptr || section->sh_type == SHT_NOBITS ||
      (section->sh_flags & SHF_COMPRESSED) == 0) {
    return false;
  }
  const Elf_Data* raw = elf_rawdata(scn, nullptr);
  if (raw == nullptr || raw->d_buf == nullptr || raw->d_size < sizeof *header) return false;
  std::memcpy(header, raw->d_buf, sizeof *header);
  return header->ch_type == kZstd;
}

}  // namespace

std::string DecompressZstdSections(Elf* elf) {
  size_t file_bytes = 0;
  const char* file = elf_rawfile(elf, &file_bytes);
  GElf_Ehdr elf_header;
  if (file == nullptr || gelf_getclass(elf) != ELFCLASS64 ||
      gelf_getehdr(elf, &elf_header) == nullptr ||
      elf_header.e_shentsize != sizeof(Elf64_Shdr)) {
    return "";
  }
  std::string image;
  GElf_Shdr section;
  Elf64_Chdr header;
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf, scn)) != nullptr;) {
    if (!ReadZstdHeader(scn, &section, &header)) continue;
    if (image.empty()) image.assign(file, file_bytes);
    const Elf_Data* raw = elf_rawdata(scn, nullptr);
    const char* packed = static_cast<const char*>(raw->d_buf) + sizeof header;
    const size_t packed_bytes = raw->d_size - sizeof header;
    if (header.ch_size / kMaxRatio > packed_bytes) return "";

    image.resize((image.size() + 15) & ~size_t{15});
    const size_t offset = image.size();
    image.resize(offset + header.ch_size);
    const size_t bytes =
        ZSTD_decompress(image.data() + offset, header.ch_size, packed, packed_bytes);
    if (ZSTD_isError(bytes) || bytes != header.ch_size) return "";

    const uint64_t at = elf_header.e_shoff + elf_ndxscn(scn) * sizeof(Elf64_Shdr);
    if (at > file_bytes || file_bytes - at < sizeof(Elf64_Shdr)) return "";
    Elf64_Shdr patched;
    std::memcpy(&patched, image.data() + at, sizeof patched);
    patched.sh_offset = offset;
    patched.sh_size = bytes;
    patched.sh_flags &= ~static_cast<uint64_t>(SHF_COMPRESSED);
    patched.sh_addralign = header.ch_addralign;
    std::memcpy(image.data() + at, &patched, sizeof patched);
  }
  return image;
}

}  // namespace memtrace::symbolizer
