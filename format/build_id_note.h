// BuildIdIn(): the build-id among the notes of an ELF file. The library reads it out of the memory
// of the traced process, the reporter out of a file and out of itself; what they compare has to be
// read in one way.
//
//   note = namesz:u32 descsz:u32 type:u32 name desc
//
// Name and desc end on a multiple of 4, in a segment whose p_align is 8 on one of 8, counted from
// the begin of the note. Behind the last note the linker need not have written what is missing to
// that.

#ifndef MEMTRACE_FORMAT_BUILD_ID_NOTE_H_
#define MEMTRACE_FORMAT_BUILD_ID_NOTE_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace memtrace::format {

// They are of 8 to 20 bytes in practice; anything longer is a damaged note.
inline constexpr size_t kMaxBuildIdBytes = 64;

// `notes`: a PT_NOTE segment, any bytes. A part of it; empty: it has no build-id.
inline std::string_view BuildIdIn(std::string_view notes, uint64_t segment_align) {
  const size_t align = segment_align == 8 ? 8 : 4;
  const auto round = [align](size_t bytes) { return (bytes + align - 1) & ~(align - 1); };
  Elf64_Nhdr note;  // that of 32-bit files is the same
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    const char* const name = notes.data() + sizeof(note);
    const size_t desc = round(sizeof(note) + size_t{note.n_namesz});
    if (desc > notes.size() || note.n_descsz > notes.size() - desc) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      return note.n_descsz <= kMaxBuildIdBytes
                 ? std::string_view(notes.data() + desc, note.n_descsz)
                 : std::string_view();
    }
    const size_t next = round(desc + size_t{note.n_descsz});
    if (next >= notes.size()) break;
    notes.remove_prefix(next);
  }
  return {};
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_BUILD_ID_NOTE_H_
