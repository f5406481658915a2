#include "symbolizer/module_names.h"

#include <chrono>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/answer_bytes.h"
#include "symbolizer/ask_child.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_relocations.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/module_file.h"
#include "symbolizer/module_question.h"

namespace memtrace::symbolizer {
namespace {

using Index = absl::flat_hash_map<std::string_view, size_t>;

void AddUses(const ElfFile& file, uint32_t type, const Index& index, std::vector<NameUse>* uses) {
  ForEachNamedSymbol(file, type, [&](const GElf_Sym& symbol, std::string_view name) {
    const int kind = GELF_ST_TYPE(symbol.st_info);
    if (kind != STT_FUNC && kind != STT_NOTYPE && kind != STT_GNU_IFUNC) return;
    const auto found = index.find(name);
    if (found == index.end()) return;
    NameUse& use = (*uses)[found->second];
    if (symbol.st_shndx == SHN_UNDEF) {
      use.wanted = true;
    } else if (type == SHT_DYNSYM) {
      use.exported = true;
    } else if (kind != STT_NOTYPE) {
      use.hidden = true;
    }
  });
}

void AddUsesByName(const ElfFile& file, const Index& index, std::vector<NameUse>* uses) {
  ForEachRelocation(file, [&](const ElfSection&, const GElf_Rela&, std::string_view symbol) {
    const auto found = index.find(symbol);
    if (found != index.end()) (*uses)[found->second].by_name = true;
  });
}

bool IsSymbolic(const ElfFile& file) {
  for (const ElfSection& section : file.SectionsOfType(SHT_DYNAMIC)) {
    Elf_Data* data = elf_getdata(section.scn, nullptr);
    if (data == nullptr || section.header.sh_entsize == 0) continue;
    const size_t count = data->d_size / section.header.sh_entsize;
    for (size_t i = 0; i < count; ++i) {
      GElf_Dyn entry;
      if (gelf_getdyn(data, static_cast<int>(i), &entry) == nullptr || entry.d_tag == DT_NULL)
        break;
      if (entry.d_tag == DT_SYMBOLIC ||
          (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_SYMBOLIC) != 0)) {
        return true;
      }
    }
  }
  return false;
}

ModuleNames ReadNames(const Module& module, const std::string& sysroot,
                      std::span<const std::string_view> names,
                      std::span<const std::string_view> texts) {
  ModuleNames result;
  result.uses.resize(names.size());
  result.contains.resize(texts.size());
  ModuleResult found;
  const std::unique_ptr<ElfFile> file = OpenModuleFile({.sysroot = sysroot}, module, &found);
  result.state = found.state;
  if (file == nullptr) return result;
  Index index;
  for (size_t i = 0; i < names.size(); ++i) index.emplace(names[i], i);
  AddUses(*file, SHT_DYNSYM, index, &result.uses);
  result.symbolic = IsSymbolic(*file);
  result.symbol_table = file->HasSymbolTable();
  if (result.symbol_table) {
    AddUses(*file, SHT_SYMTAB, index, &result.uses);
    for (NameUse& use : result.uses) {
      if (use.exported) use.hidden = false;
    }
  } else if (!texts.empty()) {
    const std::string_view data = file->Section(".rodata").data;
    for (size_t i = 0; i < texts.size(); ++i) {
      result.contains[i] = data.find(texts[i]) != data.npos;
    }
  }
  AddUsesByName(*file, index, &result.uses);
  for (NameUse& use : result.uses) {
    if (use.exported || use.hidden) {
      use.wanted = false;
    } else {
      use.by_name = false;
    }
  }
  return result;
}

// A byte for each of the fields, for each use, for each text.
std::string Encode(const ModuleNames& names) {
  std::string bytes = {static_cast<char>(names.state), names.symbolic, names.symbol_table};
  for (const NameUse& use : names.uses) {
    bytes.push_back(static_cast<char>(use.exported | use.hidden << 1 | use.wanted << 2 |
                                      use.by_name << 3));
  }
  for (const bool contains : names.contains) bytes.push_back(contains);
  return bytes;
}

// False, and `names` as it was: not an answer of ours.
bool Decode(std::string_view bytes, ModuleNames* names) {
  const size_t uses = names->uses.size();
  if (bytes.size() != 3 + uses + names->contains.size()) return false;
  const auto state = static_cast<ModuleState>(bytes[0]);
  if (state != ModuleState::kSymbolsOnly && state != ModuleState::kNotFound &&
      state != ModuleState::kBuildIdDiffers && state != ModuleState::kWrittenSince) {
    return state == ModuleState::kUnreadable;
  }
  names->state = state;
  names->symbolic = bytes[1] & 1;
  names->symbol_table = bytes[2] & 1;
  for (size_t i = 0; i < uses; ++i) {
    const char bits = bytes[3 + i];
    names->uses[i] = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
  }
  for (size_t i = 0; i < names->contains.size(); ++i) names->contains[i] = bytes[3 + uses + i] & 1;
  return true;
}

std::string EncodeQuestion(const Module& module, const std::string& sysroot,
                           std::span<const std::string_view> names,
                           std::span<const std::string_view> texts) {
  std::string bytes;
  PutModule(module, &bytes);
  Put(sysroot, &bytes);
  for (const auto& list : {names, texts}) {
    Put(static_cast<uint32_t>(list.size()), &bytes);
    for (const std::string_view text : list) Put(text, &bytes);
  }
  return bytes;
}

std::vector<std::string_view> ReadList(AnswerReader* in) {
  std::vector<std::string_view> list(in->Count(sizeof(uint32_t)));
  for (std::string_view& text : list) text = in->Text();
  return list;
}

}  // namespace

std::string AnswerNames(std::string_view question) {
  AnswerReader in(question);
  const Module module = TakeModule(&in);
  const std::string sysroot(in.Text());
  const std::vector<std::string_view> names = ReadList(&in), texts = ReadList(&in);
  return Encode(ReadNames(module, sysroot, names, texts));
}

ModuleNames FindNames(const AskForNames& ask, const Module& module, const std::string& sysroot,
                      std::span<const std::string_view> names,
                      std::span<const std::string_view> texts) {
  ModuleNames result;
  result.state = ModuleState::kUnreadable;
  result.uses.resize(names.size());
  result.contains.resize(texts.size());
  const ChildAnswer answer = ask(EncodeQuestion(module, sysroot, names, texts),
                                 std::chrono::seconds(20), size_t{1} << 20);
  if (answer.given) Decode(answer.bytes, &result);
  return result;
}

}  // namespace memtrace::symbolizer
