#include "symbolizer/static_footprint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/address_map.h"
#include "symbolizer/answer_bytes.h"
#include "symbolizer/data_units.h"
#include "symbolizer/debug_file_finder.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/module_file.h"

namespace memtrace::symbolizer {
namespace {

struct Section {
  uint64_t begin, end;
  uint64_t FootprintBytes::* kind;
  std::string name;
  bool thread_local_bss = false;
};

uint64_t FootprintBytes::* KindOf(const GElf_Shdr& header) {
  if (header.sh_type == SHT_NOBITS) return &FootprintBytes::bss;
  return (header.sh_flags & SHF_WRITE) != 0 ? &FootprintBytes::data : &FootprintBytes::text;
}

struct Symbol {
  std::string name;
  std::string file;  // of a local symbol, as its STT_FILE says
};

class Reader {
 public:
  Reader(const ElfFile& file, const ElfFile* debug, const DebugFileFinder& finder)
      : file_(file), debug_(debug), finder_(finder) {}

  void Read(StaticFootprint* out) {
    ReadSections();
    ReadSymbols();
    for (const ElfFile* file : {&file_, debug_}) {
      if (file != nullptr && file->HasDwarf() && units_.Read(*file, finder_)) {
        has_units_ = true;
        out->state = ModuleState::kDebugInfo;
        if (out->missed.empty()) out->missed = units_.note();
        break;
      }
    }
    for (const Section& section : sections_) {
      out->total.*section.kind += section.end - section.begin;
      Split(section);
    }
    for (auto& [key, bytes] : sums_) out->items.push_back({key.first, key.second, bytes});
  }

 private:
  void ReadSections() {
    for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(file_.elf(), scn)) != nullptr;) {
      const ElfSection section = file_.SectionOf(scn);
      const GElf_Shdr& header = section.header;
      if ((header.sh_flags & SHF_ALLOC) == 0 || header.sh_size == 0 ||
          header.sh_addr + header.sh_size < header.sh_addr) {
        continue;
      }
      sections_.push_back({header.sh_addr, header.sh_addr + header.sh_size, KindOf(header),
                           absl::StrCat("[", absl::string_view(section.name.data(),
                                                               section.name.size()), "]")});
      // Thread-local memory has a template in the file; .tbss takes no place there.
      sections_.back().thread_local_bss =
          (header.sh_flags & SHF_TLS) != 0 && header.sh_type == SHT_NOBITS;
    }
  }

  void ReadSymbols() {
    const ElfFile* const from = debug_ != nullptr && !file_.HasSymbolTable() ? debug_ : &file_;
    const uint32_t type = from->HasSymbolTable() ? SHT_SYMTAB : SHT_DYNSYM;
    for (const ElfSection& section : from->SectionsOfType(type)) {
      Elf_Data* data = elf_getdata(section.scn, nullptr);
      if (data == nullptr || section.header.sh_entsize == 0) continue;
      const size_t count = data->d_size / section.header.sh_entsize;
      std::string file;
      for (size_t i = 1; i < count; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
        const char* name = elf_strptr(from->elf(), section.header.sh_link, symbol.st_name);
        if (name == nullptr) continue;
        const int kind = GELF_ST_TYPE(symbol.st_info);
        if (kind == STT_FILE) {
          file = name;
        } else if ((kind == STT_FUNC || kind == STT_OBJECT || kind == STT_GNU_IFUNC) &&
                   symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0 &&
                   symbol.st_value + symbol.st_size > symbol.st_value) {
          const bool local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
          symbol_at_.Add(symbol.st_value, symbol.st_value + symbol.st_size,
                         static_cast<uint32_t>(symbols_.size()));
          symbols_.push_back({std::string(WithoutVersion(name)), local ? file : ""});
        }
      }
    }
    symbol_at_.Build();
  }

  // The pieces of a section that have one symbol and one unit each.
  void Split(const Section& section) {
    std::vector<uint64_t> cuts = {section.begin, section.end};
    const auto add = [&](const auto& segments) {
      auto at = std::upper_bound(segments.begin(), segments.end(), section.begin,
                                 [](uint64_t a, const auto& s) { return a < s.end; });
      for (; at != segments.end() && at->begin < section.end; ++at) {
        cuts.push_back(std::max(at->begin, section.begin));
        cuts.push_back(std::min(at->end, section.end));
      }
    };
    // Addresses in it are those of what follows.
    if (!section.thread_local_bss) {
      add(symbol_at_.segments());
      add(units_.segments());
    }
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] == cuts[i + 1]) continue;
      const uint32_t* symbol =
          section.thread_local_bss ? nullptr : symbol_at_.Find(cuts[i]);
      const std::string* unit = section.thread_local_bss ? nullptr : units_.Find(cuts[i]);
      std::pair<std::string, std::string> key;
      if (unit != nullptr) key.first = *unit;
      if (symbol != nullptr) {
        const Symbol& found = symbols_[*symbol];
        if (!has_units_) key.first = found.file;
        key.second = Demangle(found.name);
      } else {
        key.second = section.name;
      }
      CutName(&key.first);
      CutName(&key.second);
      sums_[key].*section.kind += cuts[i + 1] - cuts[i];
    }
  }

  const ElfFile& file_;
  const ElfFile* const debug_;
  const DebugFileFinder& finder_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  AddressMap<uint32_t> symbol_at_;
  DataUnits units_;
  bool has_units_ = false;
  std::map<std::pair<std::string, std::string>, FootprintBytes> sums_;  // by unit and name
};

StaticFootprint ReadFootprint(const Module& module, const Options& options) {
  StaticFootprint result;
  ModuleResult found;
  const std::unique_ptr<ElfFile> file = OpenModuleFile(options, module, &found);
  result.state = found.state;
  result.message = std::move(found.message);
  result.missed = std::move(found.missed);
  if (file == nullptr) return result;
  std::unique_ptr<ElfFile> debug;
  const DebugFileFinder finder(options);
  if (!file->HasDwarf()) debug = finder.FindFor(*file, module.path, &result.missed);
  Reader(*file, debug.get(), finder).Read(&result);
  return result;
}

void PutBytes(const FootprintBytes& bytes, std::string* out) {
  for (const uint64_t number : {bytes.text, bytes.data, bytes.bss}) Put64(number, out);
}

FootprintBytes TakeBytes(AnswerReader& answer) {
  FootprintBytes bytes;
  for (uint64_t* number : {&bytes.text, &bytes.data, &bytes.bss}) *number = answer.Number64();
  return bytes;
}

std::string Encode(const StaticFootprint& footprint) {
  std::string out;
  Put(static_cast<uint32_t>(footprint.state), &out);
  Put(footprint.message, &out);
  Put(footprint.missed, &out);
  PutBytes(footprint.total, &out);
  for (const FootprintItem& item : footprint.items) {
    Put(item.unit, &out);
    Put(item.name, &out);
    PutBytes(item.bytes, &out);
  }
  return out;
}

bool Decode(std::string_view bytes, StaticFootprint* out) {
  AnswerReader answer(bytes);
  const uint32_t state = answer.Number();
  out->message = answer.Text();
  out->missed = answer.Text();
  out->total = TakeBytes(answer);
  while (answer.ok() && !answer.at_end()) {
    FootprintItem item;
    item.unit = answer.Text();
    item.name = answer.Text();
    item.bytes = TakeBytes(answer);
    out->items.push_back(std::move(item));
  }
  if (!answer.ok() || state > static_cast<uint32_t>(ModuleState::kUnreadable)) return false;
  out->state = static_cast<ModuleState>(state);
  return true;
}

}  // namespace

std::string AnswerFootprint(const Options& options, std::string_view question) {
  AnswerReader in(question);
  return Encode(ReadFootprint(TakeModule(&in), options));
}

StaticFootprint FindFootprint(const AskReader& ask, const Module& module) {
  std::string question;
  PutModule(module, &question);
  const ChildAnswer answer = ask(question);
  StaticFootprint result;
  if (answer.given && Decode(answer.bytes, &result)) return result;
  result = {};
  result.state = ModuleState::kUnreadable;
  result.message = absl::StrCat(module.path, ": ", answer.why_not);
  return result;
}

}  // namespace memtrace::symbolizer
