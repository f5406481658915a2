#include "report/run/elf_facts.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/whole_io.h"

namespace memtrace::report {
namespace {

constexpr size_t kMaxString = 4096;          // PATH_MAX; longer names are damage
constexpr size_t kMaxDynamicEntries = 4096;  // real files have some forty
constexpr size_t kMaxNeeded = 1024;
constexpr uint64_t kMaxStringTable = 256 << 20;  // that of a browser with symbols is smaller
constexpr absl::string_view kSomeSanitizer = "a sanitizer";
constexpr uint32_t kMaxChain = 1 << 10;      // of a hash bucket; real ones have a handful

struct Runtime {
  absl::string_view library;  // how the name of its shared library begins
  absl::string_view clang;    // the same of clang's
  absl::string_view symbol;   // what a program with the runtime linked in exports
  absl::string_view name;
};

// UBSan is not here: it leaves the allocator alone.
constexpr Runtime kRuntimes[] = {
    {"libasan.so", "libclang_rt.asan", "__asan_init", "AddressSanitizer"},
    {"libtsan.so", "libclang_rt.tsan", "__tsan_init", "ThreadSanitizer"},
    {"libmsan.so", "libclang_rt.msan", "__msan_init", "MemorySanitizer"},
    {"libhwasan.so", "libclang_rt.hwasan", "__hwasan_init", "HWAddressSanitizer"},
    {"liblsan.so", "libclang_rt.lsan", "__lsan_init", "LeakSanitizer"},
};

uint32_t GnuHash(absl::string_view name) {
  uint32_t hash = 5381;
  for (unsigned char c : name) hash = hash * 33 + c;
  return hash;
}

uint32_t SysvHash(absl::string_view name) {
  uint32_t hash = 0;
  for (unsigned char c : name) {
    hash = (hash << 4) + c;
    const uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}

  bool ReadAt(uint64_t offset, void* out, size_t bytes) const {
    return offset <= INT64_MAX - bytes && base::ReadAllAt(fd_, offset, out, bytes);
  }

  template <typename T>
  std::optional<T> Get(uint64_t offset) const {
    T value;
    if (!ReadAt(offset, &value, sizeof(value))) return std::nullopt;
    return value;
  }

  // The NUL-terminated string at `offset`; nullopt when it has no end in reach.
  std::optional<std::string> String(uint64_t offset) const {
    std::string text;
    char part[64];
    while (text.size() < kMaxString) {
      if (offset > INT64_MAX - sizeof(part)) return std::nullopt;
      size_t got;
      if (!base::ReadUpTo(fd_, offset, part, sizeof(part), &got) || got == 0)
        return std::nullopt;
      const size_t length = strnlen(part, got);
      text.append(part, length);
      if (length < got) return text;
      offset += got;
    }
    return std::nullopt;
  }

 private:
  const int fd_;
};

// The part of a 64-bit image that its dynamic section describes.
class DynamicImage {
 public:
  DynamicImage(const Reader& reader, std::vector<Elf64_Phdr> loads)
      : reader_(reader), loads_(std::move(loads)) {}

  std::optional<uint64_t> OffsetOf(uint64_t address) const {
    for (const Elf64_Phdr& load : loads_) {
      if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz) {
        return load.p_offset + (address - load.p_vaddr);
      }
    }
    return std::nullopt;
  }

  bool ReadSection(const Elf64_Phdr& segment) {
    const size_t count = std::min<uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn),
                                            kMaxDynamicEntries);
    for (size_t i = 0; i < count; ++i) {
      const auto entry = reader_.Get<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
      if (!entry) return false;
      switch (entry->d_tag) {
        case DT_NULL: return true;
        case DT_STRTAB: strings_ = OffsetOf(entry->d_un.d_ptr); break;
        case DT_SYMTAB: symbols_ = OffsetOf(entry->d_un.d_ptr); break;
        case DT_GNU_HASH: gnu_hash_ = OffsetOf(entry->d_un.d_ptr); break;
        case DT_HASH: sysv_hash_ = OffsetOf(entry->d_un.d_ptr); break;
        case DT_SONAME: soname_ = entry->d_un.d_val; break;
        case DT_NEEDED:
          if (needed_.size() < kMaxNeeded) needed_.push_back(entry->d_un.d_val);
          break;
      }
    }
    return true;
  }

  std::string Soname() const { return soname_ ? Name(*soname_) : ""; }
  std::vector<std::string> Needed() const {
    std::vector<std::string> names;
    for (uint64_t name : needed_) names.push_back(Name(name));
    return names;
  }

  bool Defines(absl::string_view name) const {
    if (!strings_ || !symbols_) return false;
    if (gnu_hash_) return GnuDefines(name);
    return sysv_hash_ && SysvDefines(name);
  }

 private:
  std::string Name(uint64_t index) const {
    if (!strings_ || index > INT64_MAX - *strings_) return "";
    return reader_.String(*strings_ + index).value_or("");
  }

  bool IsDefined(uint32_t index, absl::string_view name) const {
    const auto symbol = reader_.Get<Elf64_Sym>(*symbols_ + uint64_t{index} * sizeof(Elf64_Sym));
    return symbol && symbol->st_shndx != SHN_UNDEF && Name(symbol->st_name) == name;
  }

  // Looks a name up as the dynamic loader does, by its hash table, for which the number of
  // symbols need not be known.
  bool GnuDefines(absl::string_view name) const {
    struct Header { uint32_t buckets, first_symbol, bloom_words, bloom_shift; };
    const auto header = reader_.Get<Header>(*gnu_hash_);
    if (!header || header->buckets == 0) return false;
    const uint64_t buckets = *gnu_hash_ + sizeof(Header) + uint64_t{header->bloom_words} * 8;
    const uint64_t chains = buckets + uint64_t{header->buckets} * 4;
    const uint32_t hash = GnuHash(name);
    const auto first = reader_.Get<uint32_t>(buckets + uint64_t{hash % header->buckets} * 4);
    if (!first || *first < header->first_symbol) return false;
    for (uint32_t i = 0; i < kMaxChain && *first <= UINT32_MAX - i; ++i) {
      const uint32_t index = *first + i;
      const auto link = reader_.Get<uint32_t>(chains + uint64_t{index - header->first_symbol} * 4);
      if (!link) return false;
      if ((*link | 1) == (hash | 1) && IsDefined(index, name)) return true;
      if (*link & 1) return false;  // the last of the bucket
    }
    return false;
  }

  bool SysvDefines(absl::string_view name) const {
    struct Header { uint32_t buckets, chains; };
    const auto header = reader_.Get<Header>(*sysv_hash_);
    if (!header || header->buckets == 0) return false;
    const uint64_t buckets = *sysv_hash_ + sizeof(Header);
    const uint64_t chains = buckets + uint64_t{header->buckets} * 4;
    auto index = reader_.Get<uint32_t>(buckets + uint64_t{SysvHash(name) % header->buckets} * 4);
    for (uint32_t i = 0; i < kMaxChain && index && *index != 0; ++i) {
      if (*index >= header->chains) return false;
      if (IsDefined(*index, name)) return true;
      index = reader_.Get<uint32_t>(chains + uint64_t{*index} * 4);
    }
    return false;
  }

  const Reader& reader_;
  const std::vector<Elf64_Phdr> loads_;
  std::optional<uint64_t> strings_, symbols_, gnu_hash_, sysv_hash_, soname_;
  std::vector<uint64_t> needed_;
};

// Is one of the runtimes' entries in the symbol table of the linker? gcc's
// -static-libasan does not export them, unlike clang.
std::string FindRuntimeInSymbolTable(const Reader& reader, const Elf64_Ehdr& header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return "";
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    const auto table = reader.Get<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!table) return "";
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= header.e_shnum) continue;
    const auto strings =
        reader.Get<Elf64_Shdr>(header.e_shoff + table->sh_link * sizeof(Elf64_Shdr));
    // A name that no symbol uses is not in the string table.
    if (!strings || strings->sh_size > kMaxStringTable) return "";
    std::string names(strings->sh_size, '\0');
    if (!reader.ReadAt(strings->sh_offset, names.data(), names.size())) return "";
    for (const Runtime& runtime : kRuntimes) {
      const std::string name = absl::StrCat(absl::string_view("\0", 1), runtime.symbol,
                                            absl::string_view("\0", 1));
      if (names.find(name) != names.npos) return std::string(runtime.name);
    }
  }
  return "";
}

std::string FindSanitizer(const ElfFacts& facts, const DynamicImage& image) {
  for (const Runtime& runtime : kRuntimes) {
    for (const std::string& library : facts.needed) {
      if (absl::StartsWith(library, runtime.library) || absl::StartsWith(library, runtime.clang)) {
        return std::string(runtime.name);
      }
    }
    if (image.Defines(runtime.symbol)) return std::string(runtime.name);
  }
  // Stripped, with a static runtime of gcc's: what else exports all of these? (The library
  // asks the same of the process it is in: preload/foreign_runtime.cc.)
  constexpr absl::string_view kIntercepted[] = {"malloc", "pthread_create", "pthread_join",
                                               "sigaction", "__libc_memalign"};
  const bool all = std::all_of(std::begin(kIntercepted), std::end(kIntercepted),
                               [&](absl::string_view name) { return image.Defines(name); });
  return all ? std::string(kSomeSanitizer) : "";
}

}  // namespace

bool ElfFacts::readable_here() const {
  return elf_class == ELFCLASS64 && byte_order == ELFDATA2LSB;
}

bool ElfFacts::is_dynamic_loader() const {
  return interpreter.empty() && (absl::StartsWith(soname, "ld-linux") ||
                                 absl::StartsWith(soname, "ld64.so") ||
                                 absl::StartsWith(soname, "ld.so"));
}

absl::StatusOr<ElfFacts> ReadElfFacts(int fd) {
  const Reader reader(fd);
  // The identification and, as they lie at the same place in both classes, type and machine.
  struct Start { unsigned char ident[EI_NIDENT]; uint16_t type, machine; };
  const auto start = reader.Get<Start>(0);
  if (!start || memcmp(start->ident, ELFMAG, SELFMAG) != 0) {
    return absl::FailedPreconditionError("not an ELF file");
  }
  ElfFacts facts;
  facts.elf_class = start->ident[EI_CLASS];
  facts.byte_order = start->ident[EI_DATA];
  if ((facts.elf_class != ELFCLASS32 && facts.elf_class != ELFCLASS64) ||
      (facts.byte_order != ELFDATA2LSB && facts.byte_order != ELFDATA2MSB)) {
    return absl::DataLossError("it is a damaged ELF file, of no known word size or byte order");
  }
  const bool swapped = facts.byte_order == ELFDATA2MSB;
  facts.machine = swapped ? __builtin_bswap16(start->machine) : start->machine;
  if (!facts.readable_here()) return facts;

  const auto header = reader.Get<Elf64_Ehdr>(0);
  if (!header) return absl::DataLossError("the ELF header is cut");
  facts.type = header->e_type;
  if (header->e_phnum > 0 && header->e_phentsize != sizeof(Elf64_Phdr)) {
    return absl::DataLossError("the ELF program headers have an unknown size");
  }
  std::vector<Elf64_Phdr> loads;
  std::optional<Elf64_Phdr> dynamic;
  for (uint32_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = reader.Get<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return absl::DataLossError("the ELF program headers are cut");
    if (segment->p_type == PT_LOAD) loads.push_back(*segment);
    if (segment->p_type == PT_DYNAMIC) dynamic = *segment;
    if (segment->p_type == PT_INTERP) {
      const auto name = reader.String(segment->p_offset);
      if (!name) return absl::DataLossError("the name of the ELF interpreter is cut");
      facts.interpreter = *name;
    }
  }
  if (!dynamic) return facts;
  facts.dynamic = true;
  DynamicImage image(reader, std::move(loads));
  if (!image.ReadSection(*dynamic)) return absl::DataLossError("the ELF dynamic section is cut");
  facts.soname = image.Soname();
  facts.needed = image.Needed();
  facts.sanitizer = FindSanitizer(facts, image);
  // A plain program is not read twice for it: only one that brings its own malloc.
  const bool named = !facts.sanitizer.empty() && facts.sanitizer != kSomeSanitizer;
  if (!named && image.Defines("malloc")) {
    const std::string name = FindRuntimeInSymbolTable(reader, *header);
    if (!name.empty()) facts.sanitizer = name;
  }
  return facts;
}

std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_386: return "x86";
    case EM_AARCH64: return "ARM64";
    case EM_ARM: return "ARM";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "PowerPC 64";
    case EM_S390: return "S/390";
    default: return absl::StrCat("machine ", machine);
  }
}

}  // namespace memtrace::report
