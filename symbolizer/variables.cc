#include "symbolizer/variables.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/address_map.h"
#include "symbolizer/answer_bytes.h"
#include "symbolizer/debug_file_finder.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/module_file.h"
#include "symbolizer/symbol_table.h"

namespace memtrace::symbolizer {
namespace {

// The sized symbols of one type, STT_OBJECT or STT_TLS.
class VariableTable {
 public:
  void AddFrom(const ElfFile& file, uint32_t sections, int type) {
    ForEachSymbol(file, sections, [&](const GElf_Sym& symbol, std::string_view name) {
      if (GELF_ST_TYPE(symbol.st_info) != type || symbol.st_size == 0 ||
          symbol.st_size > UINT64_MAX - symbol.st_value) {
        return;
      }
      const uint8_t rank = GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? 1 : 0;
      symbols_.push_back({std::string(name), symbol.st_value, symbol.st_size, rank});
    });
  }

  void Build() {
    // Best name last: AddressMap lets the last of equal ranges win.
    std::sort(symbols_.begin(), symbols_.end(),
              [](const auto& a, const auto& b) { return IsBetterName(b, a); });
    for (uint32_t i = 0; i < symbols_.size(); ++i) {
      map_.Add(symbols_[i].address, symbols_[i].address + symbols_[i].size, i);
    }
    map_.Build();
  }

  Variable Find(uint64_t offset) const {
    const uint32_t* index = map_.Find(offset);
    if (index == nullptr) return {};
    Variable variable = {Demangle(symbols_[*index].name), symbols_[*index].address};
    CutName(&variable.name);
    return variable;
  }

 private:
  std::vector<SymbolTable::Symbol> symbols_;
  AddressMap<uint32_t> map_;  // index into symbols_
};

VariablesResult ReadVariables(const Options& options, const Module& module,
                              std::span<const VariableQuery> queries) {
  VariablesResult result;
  result.variables.resize(queries.size());
  if (IsNoFile(module.path)) return result;
  ModuleResult opened;
  const DebugFileFinder finder(options);
  const std::unique_ptr<ElfFile> file = OpenModuleFile(options, module, &opened);
  std::unique_ptr<ElfFile> debug;
  std::string note;
  if (file == nullptr) {
    if (!module.build_id.empty()) debug = finder.FindByBuildId(module.build_id, &note);
    if (debug == nullptr) {
      result.message = opened.message;
      return result;
    }
  } else if (!file->HasSymbolTable()) {
    debug = finder.FindFor(*file, module.path, &note);
  }
  if ((file == nullptr || !file->HasSymbolTable()) &&
      (debug == nullptr || !debug->HasSymbolTable())) {
    result.message = absl::StrCat(
        module.path, ": no symbol table, so of its variables only exported ones have names",
        note.empty() ? "" : "; ", note);
  }
  VariableTable globals, locals;
  for (const auto& [table, type] : {std::pair(&globals, STT_OBJECT), std::pair(&locals, STT_TLS)}) {
    const ElfFile* symbols = debug != nullptr && debug->HasSymbolTable() ? debug.get() : file.get();
    if (symbols == nullptr) continue;
    table->AddFrom(*symbols, symbols->HasSymbolTable() ? SHT_SYMTAB : SHT_DYNSYM, type);
    table->Build();
  }
  for (size_t i = 0; i < queries.size(); ++i) {
    result.variables[i] = (queries[i].is_thread_local ? locals : globals).Find(queries[i].offset);
  }
  return result;
}

}  // namespace

std::string EncodeVariables(const VariablesResult& result) {
  std::string out;
  Put(result.message, &out);
  for (const Variable& variable : result.variables) {
    Put64(variable.start, &out);
    Put(variable.name, &out);
  }
  return out;
}

bool DecodeVariables(std::string_view bytes, size_t queries, VariablesResult* result) {
  result->variables.assign(queries, {});
  AnswerReader in(bytes);
  result->message = in.Text();
  for (Variable& variable : result->variables) {
    variable.start = in.Number64();
    variable.name = in.Text();
  }
  return in.ok() && in.at_end();
}

std::string AnswerVariables(const Options& options, std::string_view question) {
  AnswerReader in(question);
  const Module module = TakeModule(&in);
  std::vector<VariableQuery> queries(in.Count(sizeof(uint64_t) + sizeof(uint32_t)));
  for (VariableQuery& query : queries) {
    query.offset = in.Number64();
    query.is_thread_local = in.Number() != 0;
  }
  return EncodeVariables(ReadVariables(options, module, queries));
}

VariablesResult FindVariables(const AskReader& ask, const Module& module,
                              std::span<const VariableQuery> queries) {
  std::string question;
  PutModule(module, &question);
  Put(static_cast<uint32_t>(queries.size()), &question);
  for (const VariableQuery& query : queries) {
    Put64(query.offset, &question);
    Put(query.is_thread_local ? 1 : 0, &question);
  }
  const ChildAnswer answer = ask(question);
  VariablesResult result;
  if (answer.given && DecodeVariables(answer.bytes, queries.size(), &result)) return result;
  result.message = absl::StrCat(module.path, ": ", answer.why_not);
  result.variables.assign(queries.size(), {});
  return result;
}

}  // namespace memtrace::symbolizer
