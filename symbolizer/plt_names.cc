// PltNames: decoding stubs. See plt_names.h.

#include "symbolizer/plt_names.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "symbolizer/elf_relocations.h"

namespace memtrace::symbolizer {
namespace {

constexpr uint64_t kStubBytes = 16;
constexpr uint64_t kShortStubBytes = 8;  // .plt.got without endbr64

struct Relocations {
  absl::flat_hash_map<uint64_t, std::string> by_slot;  // GOT word -> symbol
  std::vector<uint64_t> plt_slots;                     // GOT words of .rela.plt in order
};

Relocations ReadRelocations(const ElfFile& module, const SymbolTable& symbols) {
  Relocations result;
  ForEachRelocation(module, [&](const ElfSection& section, const GElf_Rela& rela,
                                std::string_view symbol) {
    if (section.name == ".rela.plt") result.plt_slots.push_back(rela.r_offset);
    const uint32_t type = GELF_R_TYPE(rela.r_info);
    if (type == R_X86_64_IRELATIVE) {
      const SymbolTable::Symbol* target = symbols.Find(static_cast<uint64_t>(rela.r_addend));
      if (target != nullptr) result.by_slot.emplace(rela.r_offset, target->name);
    } else if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && !symbol.empty()) {
      result.by_slot.emplace(rela.r_offset, std::string(symbol));
    }
  });
  return result;
}

// The GOT word that the stub at `address` jumps through, if its code is understood.
std::optional<uint64_t> SlotOf(std::string_view code, uint64_t address,
                               const Relocations& relocations) {
  size_t at = 0;
  if (code.starts_with("\xf3\x0f\x1e\xfa")) at += 4;  // endbr64
  const bool lazy = code.size() >= at + 5 && code[at] == '\x68';
  if (lazy) {  // push imm32: the index into .rela.plt
    uint32_t index;
    std::memcpy(&index, code.data() + at + 1, sizeof index);
    if (index >= relocations.plt_slots.size()) return std::nullopt;
    return relocations.plt_slots[index];
  }
  if (code.size() > at + 6 && code.substr(at, 2) == "\x41\xbb")
    at += 6;                                         // mold: the index into r11d
  if (code.size() > at && code[at] == '\xf2') ++at;  // bnd
  if (code.size() > at + 7 && code.substr(at, 3) == "\x4c\x8b\x1d") {
    ++at;  // lld's -z retpolineplt: the word into r11, for a call that is not foreseen
  } else if (code.size() < at + 6 || code.substr(at, 2) != "\xff\x25") {
    return std::nullopt;
  }
  int32_t displacement;
  std::memcpy(&displacement, code.data() + at + 2, sizeof displacement);
  return address + at + 6 + static_cast<uint64_t>(static_cast<int64_t>(displacement));
}

}  // namespace

void PltNames::Build(const ElfFile& module, const SymbolTable& symbols) {
  if (module.machine() != EM_X86_64) return;
  Relocations relocations = ReadRelocations(module, symbols);
  if (relocations.by_slot.empty()) return;
  for (const char* name : {".plt", ".plt.sec", ".plt.got", ".iplt", ".plt.bnd"}) {
    const ElfSection section = module.Section(name);
    const uint64_t step = section.header.sh_entsize == kShortStubBytes ? kShortStubBytes
                                                                       : kStubBytes;
    for (uint64_t offset = 0; offset + kShortStubBytes <= section.data.size(); offset += step) {
      const uint64_t address = section.header.sh_addr + offset;
      const auto slot = SlotOf(section.data.substr(offset, step), address, relocations);
      if (!slot.has_value()) continue;
      const auto found = relocations.by_slot.find(*slot);
      if (found == relocations.by_slot.end()) continue;
      stubs_.Add(address, address + step, static_cast<uint32_t>(names_.size()));
      names_.push_back(found->second);
    }
  }
  stubs_.Build();
  by_got_word_ = std::move(relocations.by_slot);
}

const std::string* PltNames::Find(uint64_t address) const {
  const uint32_t* index = stubs_.Find(address);
  return index == nullptr ? nullptr : &names_[*index];
}

const std::string* PltNames::FindGotWord(uint64_t address) const {
  const auto found = by_got_word_.find(address);
  return found == by_got_word_.end() ? nullptr : &found->second;
}

}  // namespace memtrace::symbolizer
