// Symbolizer: which file, which debug information, which names. See symbolizer.h.
//
// Nothing is kept between calls: a module is asked once with all its addresses,
// and its files, often large, are closed again before the next.

#include "symbolizer/symbolizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/call_targets.h"
#include "symbolizer/debug_file_finder.h"
#include "symbolizer/demangle.h"
#include "symbolizer/dwarf_module.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/file_recorder.h"
#include "symbolizer/module_file.h"
#include "symbolizer/plt_names.h"
#include "symbolizer/symbol_table.h"

namespace memtrace::symbolizer {
namespace {

void AddTo(std::string* texts, std::string_view text) {
  if (text.empty()) return;
  absl::StrAppend(texts, texts->empty() ? "" : "; ", absl::string_view(text.data(), text.size()));
}
void AddMessage(std::string_view text, ModuleResult* result) { AddTo(&result->message, text); }
void AddMissed(std::string_view text, ModuleResult* result) {
  AddTo(&result->message, text);
  AddTo(&result->missed, text);
}

uint64_t LookupAddress(const Address& address) {
  return address.is_return_address && address.offset != 0 ? address.offset - 1 : address.offset;
}

// The names of one module, from everything that was found for it.
struct NameSources {
  std::unique_ptr<ElfFile> file;       // the module; null when only a debug file was found
  std::unique_ptr<ElfFile> debug;      // the separate debug file, if any
  std::unique_ptr<DwarfModule> dwarf;  // of one of them
  SymbolTable symbols;
  PltNames plt;
};

void LoadSymbols(const std::vector<ElfFile::Range>& code, NameSources* sources) {
  // All tables that there are: any of them may have been reduced to a few names (strip -K).
  for (const ElfFile* file : {sources->file.get(), sources->debug.get()}) {
    if (file != nullptr) sources->symbols.AddFrom(*file, SHT_SYMTAB);
  }
  if (sources->file != nullptr) {
    sources->symbols.AddFrom(*sources->file, SHT_DYNSYM);
    const ElfSection mini = sources->file->Section(".gnu_debugdata");
    if (!mini.data.empty()) {
      auto file = ElfFile::FromXz(mini.data, sources->file->path() + "(.gnu_debugdata)");
      if (file.ok()) sources->symbols.AddFrom(**file, SHT_SYMTAB);
    }
  }
  sources->symbols.Build(code);
  if (sources->file != nullptr) sources->plt.Build(*sources->file, sources->symbols);
}

// What the symbol's name has of a function's name in the debug information: the name alone, for the
// demangler writes types in its own way ("<long>", where the debug information has "<long int>").
std::string_view Stem(std::string_view function) {
  constexpr std::string_view kOperator = "operator";
  if (!function.starts_with(kOperator)) return function.substr(0, function.find('<'));
  // A conversion's name is a type; new, delete and literals are alike to a person.
  const std::string_view sign = function.substr(kOperator.size());
  if (sign.starts_with(' ')) return "operator ";
  for (const std::string_view longest : {"<=>", "<<=", "<<", "<=", "->*", "->"}) {
    if (sign.starts_with(longest)) return function.substr(0, kOperator.size() + longest.size());
  }
  if (sign.starts_with('<')) return "operator<";
  return function.substr(0, function.find('<'));
}

// The name of `symbol` for a person, if it says more than `function`, which is
// what the debug information calls it; else empty.
std::string BetterName(const SymbolTable& symbols, const SymbolTable::Symbol& symbol,
                       std::string_view function) {
  if (IsMangled(symbol.name)) {
    // Functions without a linkage name (local to their file, or with line tables
    // only): "run", where the symbol knows "app::(anonymous namespace)::run(int)".
    // The symbol must be of the same function, not of one it was merged with.
    std::string name = Demangle(symbol.name);
    if (name == symbol.name) return "";  // the demangler does not know it
    return name.find(Stem(function)) != std::string::npos ? name : "";
  }
  // A library's function under its public name: "malloc", which the source calls "__libc_malloc";
  // "xmlNewParserCtxt", an alias of "xmlNewParserCtxt__internal_alias", which is local. So it is
  // named alike with and without debug files. Again not another one with the same code.
  if (!symbol.IsPublicFunction() || symbol.name.starts_with("__")) return "";
  const bool is_alias = function.find(symbol.name) != std::string_view::npos &&
                        symbols.HasLocalFunction(symbol.address, function);
  return function.starts_with("_") || is_alias ? symbol.name : "";
}

// Fills what the debug information left open in the frames of one address.
void CompleteFrames(const NameSources& sources, uint64_t address, std::vector<Frame>* frames) {
  if (!frames->empty() && IsMangled(frames->back().linkage_name)) return;
  const bool has_name = !frames->empty() && !frames->back().function.empty();
  if (!has_name) {
    if (const std::string* stub = sources.plt.Find(address); stub != nullptr) {
      if (frames->empty()) frames->emplace_back();
      frames->back().function = absl::StrCat(Demangle(*stub), "@plt");
      if (IsMangled(*stub)) frames->back().linkage_name = *stub;
      return;
    }
  }
  const SymbolTable::Symbol* symbol = sources.symbols.Find(address);
  if (symbol == nullptr) return;
  std::string name = has_name
                         ? BetterName(sources.symbols, *symbol, frames->back().function)
                         : Demangle(symbol->name);
  if (name.empty()) {
    // The source's name stays.
    if (has_name && IsMangled(symbol->name) && Demangle(symbol->name) == symbol->name &&
        symbol->name.find(frames->back().function) != std::string::npos) {
      frames->back().linkage_name = symbol->name;
    }
    return;
  }
  if (frames->empty()) frames->emplace_back();
  frames->back().function = std::move(name);
  if (IsMangled(symbol->name)) frames->back().linkage_name = symbol->name;
}

}  // namespace

class Symbolizer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), finder_(options_) {}

  ModuleResult Symbolize(const Module& module, std::span<const Address> addresses) {
    ModuleResult result;
    const FileRecorder recorder(&result.files);
    result.frames.resize(addresses.size());
    if (IsNoFile(module.path)) {
      result.message = absl::StrCat(module.path.empty() ? "(no path)" : module.path,
                                    ": not a file, its functions have no names");
      return result;
    }
    NameSources sources;
    if (!OpenFiles(module, &sources, &result)) return result;
    const ElfFile& image = sources.file != nullptr ? *sources.file : *sources.debug;
    const std::vector<ElfFile::Range> code = image.ExecutableRanges();
    if (AsksForPlaces(addresses) || addresses.empty()) OpenDwarf(code, &sources, &result);
    LoadSymbols(code, &sources);
    LookUp(sources, addresses, &result);
    if (sources.file != nullptr) NameCalled(sources, addresses, &result);
    return result;
  }

 private:
  bool OpenFiles(const Module& module, NameSources* sources, ModuleResult* result) const {
    sources->file = OpenModuleFile(options_, module, result);
    if (sources->file == nullptr) {
      // The debug file of the right build may still be installed.
      if (module.build_id.empty()) return false;
      std::string note;
      sources->debug = finder_.FindByBuildId(module.build_id, &note);
      AddMissed(note, result);
      if (sources->debug == nullptr) return false;
      result->state = ModuleState::kSymbolsOnly;
      AddMessage("names come from its debug file", result);
    } else if (!sources->file->HasDwarf()) {
      std::string note;
      sources->debug = finder_.FindFor(*sources->file, module.path, &note);
      AddMissed(note, result);
    }
    if (sources->debug != nullptr) result->debug_file = sources->debug->path();
    return true;
  }

  void OpenDwarf(const std::vector<ElfFile::Range>& code, NameSources* sources,
                 ModuleResult* result) const {
    const ElfFile* file = sources->file.get();
    if (file == nullptr || !file->HasDwarf()) file = sources->debug.get();
    if (file == nullptr || !file->HasDwarf()) {
      AddMessage(absl::StrCat(sources->file != nullptr ? sources->file->path()
                                                       : sources->debug->path(),
                              ": no debug information, so no files and lines"),
                 result);
      return;
    }
    auto dwarf = DwarfModule::Open(*file, code, finder_);
    if (!dwarf.ok()) {
      AddMissed(std::string_view(dwarf.status().message().data(),
                                 dwarf.status().message().size()),
                result);
      return;
    }
    sources->dwarf = *std::move(dwarf);
    result->state = ModuleState::kDebugInfo;
  }

  static void LookUp(const NameSources& sources, std::span<const Address> addresses,
                     ModuleResult* result) {
    std::vector<std::pair<uint64_t, size_t>> asked;  // (looked up, index in `addresses`)
    asked.reserve(addresses.size());
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (!addresses[i].called) asked.emplace_back(LookupAddress(addresses[i]), i);
    }
    std::sort(asked.begin(), asked.end());
    std::vector<uint64_t> distinct;
    for (const auto& [address, index] : asked) {
      if (distinct.empty() || distinct.back() != address) distinct.push_back(address);
    }

    std::vector<std::vector<Frame>> frames(distinct.size());
    if (sources.dwarf != nullptr) {
      sources.dwarf->Resolve(distinct, frames);
      AddMissed(sources.dwarf->note(), result);
    }
    for (size_t i = 0, at = 0; i < distinct.size(); ++i) {
      CompleteFrames(sources, distinct[i], &frames[i]);
      for (; at < asked.size() && asked[at].first == distinct[i]; ++at) {
        const bool last = at + 1 == asked.size() || asked[at + 1].first != distinct[i];
        std::vector<Frame>& wanted = result->frames[asked[at].second];
        if (last) {
          wanted = std::move(frames[i]);
        } else {
          wanted = frames[i];
        }
      }
    }
  }

  static void NameCalled(const NameSources& sources, std::span<const Address> addresses,
                         ModuleResult* result) {
    const CallTargets targets(*sources.file, sources.symbols, sources.plt);
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (!addresses[i].called) continue;
      std::string name = targets.Find(addresses[i].offset);
      if (name.empty()) continue;
      Frame frame;
      frame.function = Demangle(name);
      if (IsMangled(name)) frame.linkage_name = std::move(name);
      result->frames[i].push_back(std::move(frame));
    }
  }

  const Options options_;
  const DebugFileFinder finder_;
};

Symbolizer::Symbolizer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Symbolizer::~Symbolizer() = default;

ModuleResult Symbolizer::Symbolize(const Module& module, std::span<const Address> addresses) {
  return impl_->Symbolize(module, addresses);
}

}  // namespace memtrace::symbolizer
