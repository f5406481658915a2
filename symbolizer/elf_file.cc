// ElfFile: opening and checking. See elf_file.h.

#include "symbolizer/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file_stamp.h"
#include "base/whole_io.h"
#include "format/build_id_note.h"
#include "symbolizer/file_recorder.h"
#include "symbolizer/zstd_sections.h"

namespace memtrace::symbolizer {

std::string HexOf(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::Open(const std::string& path) {
  elf_version(EV_CURRENT);
  // A trace may name a device, and opening some is an act already.
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    FileRecorder::Note(base::FileStamp::Of(path, st));
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  }
  // Should it become a fifo or a terminal just now, it neither blocks us nor becomes ours.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    FileRecorder::Note(base::FileStamp::Of(path));
    const std::string message = absl::StrCat(path, ": ", std::strerror(error));
    return error == ENOENT || error == ENOTDIR ? absl::NotFoundError(message)
                                               : absl::PermissionDeniedError(message);
  }
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  }
  const base::FileStamp stamp = base::FileStamp::Of(path, st);
  FileRecorder::Note(stamp);
  // Private: libelf writes into its mapping when it decompresses or converts.
  Elf* elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, nullptr);
  std::unique_ptr<ElfFile> file(new ElfFile(fd, elf, path));
  file->device_ = stamp.device;
  file->inode_ = stamp.inode;
  file->written_ns_ = stamp.modified_ns;
  file->changed_ns_ = stamp.changed_ns;
  if (absl::Status status = file->Check(stamp.bytes); !status.ok()) {
    return status;
  }
  file->ReplaceByDecompressed();
  return file;
}

void ElfFile::ReplaceByDecompressed() {
  std::string image = DecompressZstdSections(elf_);
  if (image.empty()) return;
  image_ = std::move(image);
  Elf* elf = elf_memory(image_.data(), image_.size());
  if (elf == nullptr) return;
  elf_end(elf_);
  elf_ = elf;
}

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::FromXz(std::string_view compressed,
                                                         const std::string& label) {
  elf_version(EV_CURRENT);
  const int fd = memfd_create("memtrace-gnu_debugdata", MFD_CLOEXEC);
  if (fd < 0) return absl::InternalError(absl::StrCat(label, ": ", std::strerror(errno)));
  if (!base::WriteAll(fd, compressed)) {
    close(fd);
    return absl::InternalError(absl::StrCat(label, ": ", std::strerror(errno)));
  }
  Elf* elf = dwelf_elf_begin(fd);  // decompresses into memory of its own
  std::unique_ptr<ElfFile> file(new ElfFile(fd, elf, label));
  if (absl::Status status = file->Check(UINT64_MAX); !status.ok()) return status;
  return file;
}

namespace {

// The build-id of a file in which the note has no bytes behind it that make its length a multiple
// of 4, as linkers write one of a given length: libdw asks for them.
std::string UnpaddedBuildId(Elf* elf) {
  size_t segments = 0, size = 0;
  const char* const raw = elf_rawfile(elf, &size);
  if (raw == nullptr || elf_getphdrnum(elf, &segments) != 0) return "";
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_NOTE ||
        header.p_offset > size || header.p_filesz > size - header.p_offset) {
      continue;
    }
    const std::string_view id =
        format::BuildIdIn({raw + header.p_offset, header.p_filesz}, header.p_align);
    if (!id.empty()) return std::string(id);
  }
  return "";
}

}  // namespace

absl::Status ElfFile::Check(uint64_t file_bytes) {
  if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF ||
      gelf_getehdr(elf_, &header_) == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": not an ELF file"));
  }
  if (header_.e_ident[EI_DATA] != ELFDATA2LSB) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": not a little-endian ELF file"));
  }
  size_t sections = 0;
  size_t segments = 0;
  if (elf_getshdrnum(elf_, &sections) != 0 || elf_getphdrnum(elf_, &segments) != 0) {
    return absl::DataLossError(absl::StrCat(path_, ": damaged ELF headers: ", elf_errmsg(-1)));
  }
  // libelf shows a file whose section headers lie beyond its end as one without sections.
  if (header_.e_shoff > file_bytes ||
      (header_.e_shoff != 0 && file_bytes != UINT64_MAX &&
       header_.e_shnum > (file_bytes - header_.e_shoff) / std::max<uint64_t>(
                             header_.e_shentsize, 1))) {
    return absl::DataLossError(absl::StrCat(path_, ": cut short: its section headers are missing"));
  }
  const void* id = nullptr;
  const ssize_t bytes = dwelf_elf_gnu_build_id(elf_, &id);
  if (bytes > 0 && static_cast<size_t>(bytes) <= format::kMaxBuildIdBytes && id != nullptr) {
    build_id_.assign(static_cast<const char*>(id), static_cast<size_t>(bytes));
  } else {
    build_id_ = UnpaddedBuildId(elf_);
  }
  return absl::OkStatus();
}

absl::Status ElfFile::CheckLoadable() const {
  if (header_.e_type == ET_EXEC || header_.e_type == ET_DYN) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path_, ": not an executable or shared library"));
}

ElfFile::~ElfFile() {
  if (elf_ != nullptr) elf_end(elf_);
  close(fd_);
}

ElfSection ElfFile::SectionOf(Elf_Scn* scn) const {
  ElfSection section;
  size_t names = 0;
  if (scn == nullptr || gelf_getshdr(scn, &section.header) == nullptr ||
      elf_getshdrstrndx(elf_, &names) != 0) {
    return section;
  }
  section.scn = scn;
  if (const char* name = elf_strptr(elf_, names, section.header.sh_name); name != nullptr) {
    section.name = name;
  }
  if (section.header.sh_type != SHT_NOBITS) {
    const Elf_Data* data = elf_rawdata(scn, nullptr);
    if (data != nullptr && data->d_buf != nullptr) {
      section.data = {static_cast<const char*>(data->d_buf), data->d_size};
    }
  }
  return section;
}

ElfSection ElfFile::Section(std::string_view name) const {
  size_t names = 0;
  if (elf_getshdrstrndx(elf_, &names) != 0) return {};
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf_, scn)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr) continue;
    const char* found = elf_strptr(elf_, names, header.sh_name);
    if (found != nullptr && name == found) return SectionOf(scn);
  }
  return {};
}

std::vector<ElfSection> ElfFile::SectionsOfType(uint32_t type) const {
  std::vector<ElfSection> sections;
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf_, scn)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) != nullptr && header.sh_type == type) {
      sections.push_back(SectionOf(scn));
    }
  }
  return sections;
}

bool ElfFile::HasDwarf() const {
  return !Section(".debug_info").data.empty() || !Section(".zdebug_info").data.empty();
}

bool ElfFile::HasSymbolTable() const { return !Section(".symtab").data.empty(); }

std::vector<ElfFile::Range> ElfFile::ExecutableRanges() const {
  std::vector<Range> ranges;
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf_, scn)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr) continue;
    // Separate debug files keep these headers, as SHT_NOBITS.
    constexpr uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
    if ((header.sh_flags & kCode) == kCode && header.sh_size <= UINT64_MAX - header.sh_addr) {
      ranges.push_back({header.sh_addr, header.sh_addr + header.sh_size});
    }
  }
  size_t segments = 0;
  if (!ranges.empty() || elf_getphdrnum(elf_, &segments) != 0) return ranges;
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf_, static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
        segment.p_memsz <= UINT64_MAX - segment.p_vaddr) {
      ranges.push_back({segment.p_vaddr, segment.p_vaddr + segment.p_memsz});
    }
  }
  return ranges;
}

std::string ElfFile::DebugLink(uint32_t* crc) const {
  GElf_Word word = 0;
  const char* name = dwelf_elf_gnu_debuglink(elf_, &word);
  if (name == nullptr) return "";
  *crc = word;
  return name;
}

}  // namespace memtrace::symbolizer
