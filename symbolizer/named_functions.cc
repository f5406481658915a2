#include "symbolizer/named_functions.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/module_file.h"

namespace memtrace::symbolizer {
namespace {

constexpr size_t kMostFunctions = 10'000;

std::string ReadFunctions(const Options& options, const Module& module,
                          std::span<const std::string_view> prefixes) {
  std::string out;
  ModuleResult opened;
  const std::unique_ptr<ElfFile> file = OpenModuleFile(options, module, &opened);
  if (file == nullptr) return out;
  std::vector<NamedRange> ranges;
  // Both: .symtab may have been reduced to a few names. What is exported stands in both.
  for (const uint32_t type : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}}) {
    ForEachSymbol(*file, type, [&](const GElf_Sym& symbol, std::string_view name) {
      const bool wanted =
          std::any_of(prefixes.begin(), prefixes.end(),
                      [&](std::string_view prefix) { return name.starts_with(prefix); });
      if (!wanted || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) return;
      ranges.push_back({symbol.st_value, symbol.st_value + symbol.st_size});
    });
  }
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  out.assign(reinterpret_cast<const char*>(ranges.data()), ranges.size() * sizeof(NamedRange));
  return out;
}

}  // namespace

std::string AnswerNamedFunctions(const Options& options, std::string_view question) {
  AnswerReader in(question);
  const Module module = TakeModule(&in);
  std::vector<std::string_view> prefixes(in.Count(sizeof(uint32_t)));
  for (std::string_view& prefix : prefixes) prefix = in.Text();
  return ReadFunctions(options, module, prefixes);
}

std::vector<NamedRange> FindNamedFunctions(const AskReader& ask, const Module& module,
                                           std::span<const std::string_view> prefixes) {
  std::vector<NamedRange> ranges;
  if (IsNoFile(module.path)) return ranges;
  std::string question;
  PutModule(module, &question);
  Put(static_cast<uint32_t>(prefixes.size()), &question);
  for (const std::string_view prefix : prefixes) Put(prefix, &question);
  const ChildAnswer answer = ask(question);
  const size_t count = answer.bytes.size() / sizeof(NamedRange);
  if (!answer.given || count > kMostFunctions || answer.bytes.size() % sizeof(NamedRange) != 0) {
    return ranges;
  }
  ranges.resize(count);
  if (!ranges.empty()) std::memcpy(ranges.data(), answer.bytes.data(), answer.bytes.size());
  return ranges;
}

}  // namespace memtrace::symbolizer
