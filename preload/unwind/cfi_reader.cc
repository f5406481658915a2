#include "preload/unwind/cfi_reader.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "preload/unwind/stack_bounds.h"

namespace memtrace::unwind {
namespace {

// DW_EH_PE_*: how a pointer is written.
enum : uint8_t {
  kPeAbsolute = 0x00, kPeUleb = 0x01, kPeUdata2 = 0x02, kPeUdata4 = 0x03, kPeUdata8 = 0x04,
  kPeSleb = 0x09, kPeSdata2 = 0x0a, kPeSdata4 = 0x0b, kPeSdata8 = 0x0c,
  kPeFormat = 0x0f,
  kPePcRelative = 0x10, kPeDataRelative = 0x30, kPeAligned = 0x50,
  kPeBase = 0x70,
  kPeIndirect = 0x80, kPeOmit = 0xff,
};

// The value as written, without its base.
bool ReadFormat(ByteReader* reader, uint8_t format, uint64_t* value) {
  switch (format & kPeFormat) {
    case kPeAbsolute:
    case kPeUdata8:
    case kPeSdata8: *value = reader->Fixed<uint64_t>(); break;
    case kPeUleb: *value = reader->Uleb(); break;
    case kPeSleb: *value = static_cast<uint64_t>(reader->Sleb()); break;
    case kPeUdata2: *value = reader->Fixed<uint16_t>(); break;
    case kPeUdata4: *value = reader->Fixed<uint32_t>(); break;
    case kPeSdata2: *value = static_cast<uint64_t>(int64_t{reader->Fixed<int16_t>()}); break;
    case kPeSdata4: *value = static_cast<uint64_t>(int64_t{reader->Fixed<int32_t>()}); break;
    default: return false;
  }
  return reader->ok();
}

// A pointer to code or to unwind tables. Those are never indirect.
bool ReadPointer(const CfiImage& image, ByteReader* reader, uint8_t encoding, uint64_t* value) {
  if (encoding == kPeOmit || (encoding & kPeIndirect)) return false;
  const uintptr_t here = image.AddressOf(reader->at());
  if (!ReadFormat(reader, encoding, value)) return false;
  switch (encoding & kPeBase) {
    case 0: return true;
    case kPePcRelative: *value += here; return true;
    case kPeDataRelative: *value += image.hdr; return true;
    default: return false;
  }
}

// Passes over a pointer that is not needed here, whatever it is relative to.
bool SkipPointer(const CfiImage& image, ByteReader* reader, uint8_t encoding) {
  if (encoding == kPeOmit) return true;
  if ((encoding & ~kPeIndirect) == kPeAligned) {
    const uintptr_t here = image.AddressOf(reader->at());
    reader->Skip((-here & (sizeof(uint64_t) - 1)) + sizeof(uint64_t));
    return reader->ok();
  }
  uint64_t ignored;
  return ReadFormat(reader, encoding, &ignored);
}

// An entry of .eh_frame: its length, and its id or CIE pointer.
struct EntryHead {
  ByteReader body;       // behind the id
  uintptr_t id_address;  // where the id lies: CIE pointers count from there
  uint64_t id;           // 0: a CIE
  uintptr_t next;        // the entry behind it
  bool terminator;
};

bool ReadEntryHead(const CfiImage& image, uintptr_t address, EntryHead* head) {
  ByteReader reader = image.ReaderAt(address);
  uint64_t length = reader.Fixed<uint32_t>();
  const bool wide = length == 0xffffffff;
  if (wide) length = reader.Fixed<uint64_t>();
  if (!reader.ok()) return false;
  head->terminator = length == 0;
  if (head->terminator) return true;
  head->body = reader.Block(length);
  if (!reader.ok()) return false;
  head->id_address = image.AddressOf(head->body.at());
  head->id = wide ? head->body.Fixed<uint64_t>() : head->body.Fixed<uint32_t>();
  head->next = image.AddressOf(head->body.end());
  return head->body.ok();
}

CfiStatus ReadAugmentation(const CfiImage& image, const uint8_t* letters, ByteReader* reader,
                           Cie* cie) {
  if (*letters == 0) return CfiStatus::kOk;
  if (*letters != 'z') return CfiStatus::kUnsupported;  // "eh" of gcc 2, or unknown
  cie->has_augmentation_data = true;
  ByteReader data = reader->Block(reader->Uleb());
  for (++letters; *letters != 0; ++letters) {
    switch (*letters) {
      case 'R': cie->fde_encoding = data.Byte(); break;
      case 'P': {
        const uint8_t encoding = data.Byte();
        if (!SkipPointer(image, &data, encoding)) return CfiStatus::kMalformed;
        break;
      }
      case 'L': data.Byte(); break;
      case 'S': cie->signal_frame = true; break;
      case 'B': break;  // pointer authentication key of aarch64: no data
      default: return CfiStatus::kUnsupported;
    }
  }
  return data.ok() ? CfiStatus::kOk : CfiStatus::kMalformed;
}

CfiStatus ReadCie(const CfiImage& image, uintptr_t address, Cie* cie) {
  EntryHead head;
  if (!ReadEntryHead(image, address, &head) || head.terminator || head.id != 0) {
    return CfiStatus::kMalformed;
  }
  ByteReader& reader = head.body;
  const uint8_t version = reader.Byte();
  if (version != 1 && version != 3 && version != 4) return CfiStatus::kUnsupported;
  const uint8_t* letters = reader.at();
  while (reader.Byte() != 0) {
  }
  if (!reader.ok()) return CfiStatus::kMalformed;
  if (version == 4) {
    const uint8_t address_bytes = reader.Byte();
    const uint8_t segment_bytes = reader.Byte();
    if (address_bytes != sizeof(uintptr_t) || segment_bytes != 0) return CfiStatus::kUnsupported;
  }
  cie->code_alignment = reader.Uleb();
  cie->data_alignment = reader.Sleb();
  cie->ra_register = version == 1 ? reader.Byte() : reader.Uleb();
  const CfiStatus status = ReadAugmentation(image, letters, &reader, cie);
  if (status != CfiStatus::kOk) return status;
  cie->program = reader;
  if (!reader.ok()) return CfiStatus::kMalformed;
  return cie->ra_register < kRegisterCount ? CfiStatus::kOk : CfiStatus::kUnsupported;
}

// Reads the FDE at `address`; kNoFde when it is not about `pc`, or a CIE.
CfiStatus ReadFde(const CfiImage& image, uintptr_t address, uintptr_t pc, Fde* fde,
                  EntryHead* head) {
  if (!ReadEntryHead(image, address, head)) return CfiStatus::kMalformed;
  if (head->terminator || head->id == 0) return CfiStatus::kNoFde;
  ByteReader& reader = head->body;
  fde->cie = Cie{};
  const CfiStatus status = ReadCie(image, head->id_address - head->id, &fde->cie);
  if (status != CfiStatus::kOk) return status;
  uint64_t start;
  uint64_t length;
  if (!ReadPointer(image, &reader, fde->cie.fde_encoding, &start)) return CfiStatus::kUnsupported;
  if (!ReadFormat(&reader, fde->cie.fde_encoding, &length)) return CfiStatus::kMalformed;
  fde->start = start;
  fde->end = start + length;
  if (fde->end < fde->start) return CfiStatus::kMalformed;
  if (pc - fde->start >= length) return CfiStatus::kNoFde;
  if (fde->cie.has_augmentation_data) reader.Skip(reader.Uleb());  // the LSDA pointer
  fde->program = reader;
  return reader.ok() ? CfiStatus::kOk : CfiStatus::kMalformed;
}

CfiStatus ScanForFde(const CfiImage& image, uintptr_t eh_frame, uintptr_t pc, Fde* fde) {
  for (uintptr_t at = eh_frame; at - image.address < image.size;) {
    EntryHead head;
    const CfiStatus status = ReadFde(image, at, pc, fde, &head);
    if (status == CfiStatus::kOk) return status;
    if (status == CfiStatus::kMalformed) return status;
    if (head.terminator) break;
    at = head.next;
  }
  return CfiStatus::kNoFde;
}

struct ProgramHeaders {
  const Elf64_Phdr* first;
  size_t count;
};

// Are these the headers of the object whose .eh_frame_hdr lies at `hdr`?
bool Belong(const ProgramHeaders& headers, uintptr_t bias, uintptr_t hdr) {
  for (size_t i = 0; i < headers.count; ++i) {
    if (headers.first[i].p_type == PT_GNU_EH_FRAME) return bias + headers.first[i].p_vaddr == hdr;
  }
  return false;
}

// By the ELF header at `address`, which begins a page that can be read.
bool HeadersAt(uintptr_t address, uintptr_t bias, uintptr_t hdr, ProgramHeaders* headers) {
  if (address % kPageBytes != 0) return false;
  const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(address);
  if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(Elf64_Phdr) ||
      elf->e_phoff > kPageBytes ||
      elf->e_phoff + elf->e_phnum * sizeof(Elf64_Phdr) > kPageBytes) {
    return false;
  }
  *headers = {reinterpret_cast<const Elf64_Phdr*>(address + elf->e_phoff), elf->e_phnum};
  return Belong(*headers, bias, hdr);
}

// By what the kernel told the process of its executable.
bool HeadersOfExecutable(uintptr_t bias, uintptr_t hdr, ProgramHeaders* headers) {
  *headers = {reinterpret_cast<const Elf64_Phdr*>(getauxval(AT_PHDR)), getauxval(AT_PHNUM)};
  return headers->first != nullptr && Belong(*headers, bias, hdr);
}

const Elf64_Phdr* SegmentOf(const ProgramHeaders& headers, uintptr_t bias, uintptr_t address) {
  for (size_t i = 0; i < headers.count; ++i) {
    const Elf64_Phdr& phdr = headers.first[i];
    if (phdr.p_type == PT_LOAD && (phdr.p_flags & PF_R) &&
        address - (bias + phdr.p_vaddr) < phdr.p_memsz)
      return &phdr;
  }
  return nullptr;
}

// A table of a kind that we do not read is no error here: FindFde() tells of it.
bool ReadEhFrame(const CfiImage& image, ByteReader* reader, uint64_t* eh_frame) {
  reader->Skip(1);
  const uint8_t encoding = reader->Byte();
  reader->Skip(2);
  return reader->ok() && ReadPointer(image, reader, encoding, eh_frame);
}

}  // namespace

ByteReader CfiImage::HdrReader() const {
  if (hdr_bytes == 0) return ReaderAt(hdr);
  const auto* const at = reinterpret_cast<const uint8_t*>(hdr);
  return {at, at + hdr_bytes};
}

ByteReader CfiImage::ReaderAt(uintptr_t at) const {
  const uintptr_t offset = at - address;
  if (offset >= size) {
    ByteReader failed;
    failed.Skip(1);
    return failed;
  }
  return {data + offset, data + size};
}

bool LiveImage(const dl_find_object& object, CfiImage* image) {
  *image = {};
  if (object.dlfo_eh_frame == nullptr) return false;
  const auto start = reinterpret_cast<uintptr_t>(object.dlfo_map_start);
  const auto end = reinterpret_cast<uintptr_t>(object.dlfo_map_end);
  const uintptr_t bias = object.dlfo_link_map->l_addr;
  image->hdr = reinterpret_cast<uintptr_t>(object.dlfo_eh_frame);
  // The segment of .eh_frame_hdr, by the program headers. The mapping that was found
  // is not it: it may have holes; and of an executable whose segments lie apart it is
  // one segment, that of the code.
  ProgramHeaders headers;
  if (HeadersAt(start, bias, image->hdr, &headers) ||
      (bias != start && ProbeWord(bias) && HeadersAt(bias, bias, image->hdr, &headers)) ||
      HeadersOfExecutable(bias, image->hdr, &headers)) {
    if (const Elf64_Phdr* const of_hdr = SegmentOf(headers, bias, image->hdr)) {
      const auto use = [&](const Elf64_Phdr& phdr) {
        image->address = bias + phdr.p_vaddr;
        image->size = phdr.p_memsz;
        image->data = reinterpret_cast<const uint8_t*>(image->address);
      };
      use(*of_hdr);
      ByteReader reader = image->HdrReader();
      uint64_t eh_frame;
      if (!ReadEhFrame(*image, &reader, &eh_frame) || eh_frame - image->address < image->size)
        return true;
      if (const Elf64_Phdr* const of_frames = SegmentOf(headers, bias, eh_frame)) {
        image->hdr_bytes = image->address + image->size - image->hdr;
        use(*of_frames);
      }
      return true;
    }
  }
  // An object without its headers in memory: its mapping, as long as that is one.
  if (image->hdr - start >= end - start) return false;
  image->address = start;
  image->size = end - start;
  image->data = static_cast<const uint8_t*>(object.dlfo_map_start);
  return true;
}

constexpr int kNeighbours = 32;

CfiStatus FindFde(const CfiImage& image, uintptr_t pc, Fde* fde) {
  ByteReader reader = image.HdrReader();
  const uint8_t version = reader.Byte();
  const uint8_t eh_frame_encoding = reader.Byte();
  const uint8_t count_encoding = reader.Byte();
  const uint8_t table_encoding = reader.Byte();
  if (!reader.ok()) return CfiStatus::kMalformed;
  if (version != 1) return CfiStatus::kUnsupported;
  uint64_t eh_frame;
  if (!ReadPointer(image, &reader, eh_frame_encoding, &eh_frame)) return CfiStatus::kUnsupported;
  uint64_t count = 0;
  if (count_encoding == kPeOmit || table_encoding != (kPeDataRelative | kPeSdata4)) {
    return ScanForFde(image, eh_frame, pc, fde);
  }
  if (!ReadPointer(image, &reader, count_encoding, &count)) return CfiStatus::kUnsupported;

  struct Entry {
    int32_t start;
    int32_t fde;
  };
  if (count > reader.left() / sizeof(Entry)) return CfiStatus::kMalformed;
  const uint8_t* table = reader.at();
  const auto entry_at = [table](uint64_t index) {
    Entry entry;
    memcpy(&entry, table + index * sizeof(Entry), sizeof(Entry));
    return entry;
  };
  // The last entry that starts at or before the pc.
  const auto target = static_cast<int64_t>(pc - image.hdr);
  uint64_t low = 0;
  uint64_t high = count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (entry_at(middle).start <= target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return CfiStatus::kNoFde;
  const uintptr_t address = image.hdr + static_cast<uintptr_t>(int64_t{entry_at(low - 1).fde});
  EntryHead head;
  const CfiStatus status = ReadFde(image, address, pc, fde, &head);
  const bool without_code =
      status == CfiStatus::kNoFde && !head.terminator && head.id != 0 && fde->start == fde->end;
  if (!without_code) return status;
  // If two FDEs begin at one address, lld keeps the first in its table: a function without code, as
  // an endless loop that the compiler dropped, hides the one behind it, which is also the next one
  // in .eh_frame or nearly so.
  const uintptr_t start = fde->start;
  uintptr_t at = head.next;
  for (int i = 0; i < kNeighbours && at - image.address < image.size; ++i, at = head.next) {
    const CfiStatus behind = ReadFde(image, at, pc, fde, &head);
    if (behind == CfiStatus::kOk && fde->start == start) return behind;
    if (behind == CfiStatus::kMalformed || head.terminator) break;
  }
  return CfiStatus::kNoFde;
}

CfiStatus FindRow(const CfiImage& image, uintptr_t pc, CfiRow* row) {
  Fde fde;
  const CfiStatus status = FindFde(image, pc, &fde);
  return status == CfiStatus::kOk ? RunProgram(image, fde, pc, row) : status;
}

ByteReader ExpressionBytes(const CfiImage& image, int64_t expression) {
  ByteReader reader = image.ReaderAt(image.address + static_cast<uint32_t>(expression));
  return reader.Block(reader.Uleb());
}

}  // namespace memtrace::unwind
