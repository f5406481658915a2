// SymbolTable: reading and ranking. See symbol_table.h.

#include "symbolizer/symbol_table.h"

#include <algorithm>
#include <optional>

#include "symbolizer/elf_symbols.h"

namespace memtrace::symbolizer {
namespace {

// "$a", "$d", "$t", "$x" of ARM and RISC-V, which say where code and data begin; "$x.12",
// "$xrv64gc" and "$d.foo" are such, too.
bool IsMappingSymbol(int type, std::string_view name) {
  if (type != STT_NOTYPE || name.size() < 2 || name[0] != '$') return false;
  if (std::string_view("adtx").find(name[1]) == std::string_view::npos) return false;
  return name.size() == 2 || name[2] == '.' || name.starts_with("$xrv");
}

// Lower is better. Nothing for symbols that do not name code.
std::optional<uint8_t> RankOf(const GElf_Sym& symbol, std::string_view name) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
  if (!function && type != STT_NOTYPE) return std::nullopt;
  // Assembler and compiler marks, not functions. Swift's functions begin with "$s".
  if (name.empty() || IsMappingSymbol(type, name) || name.starts_with(".L")) return std::nullopt;
  const bool local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
  return static_cast<uint8_t>((function ? 0 : 2) + (local ? 1 : 0));
}

// gcc's crtbegin.o gives its functions no size. Where the compiler of what is behind them wrote no
// symbols (GHC), or they were removed, the last of them would have all of it.
constexpr std::string_view kLastOfCrtBegin = "frame_dummy";
constexpr uint64_t kMostBytesOfIt = 16;

size_t LeadingUnderscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

}  // namespace

bool IsBetterName(const SymbolTable::Symbol& a, const SymbolTable::Symbol& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  const size_t a_underscores = LeadingUnderscores(a.name);
  const size_t b_underscores = LeadingUnderscores(b.name);
  if (a_underscores != b_underscores) return a_underscores < b_underscores;
  if (a.name.size() != b.name.size()) return a.name.size() < b.name.size();
  return a.name < b.name;
}

void SymbolTable::AddFrom(const ElfFile& file, uint32_t type) {
  ForEachSymbol(file, type, [&](const GElf_Sym& symbol, std::string_view name) {
    const std::optional<uint8_t> rank = RankOf(symbol, name);
    if (!rank.has_value()) return;
    symbols_.push_back({std::string(name), symbol.st_value, symbol.st_size, *rank});
  });
}

void SymbolTable::Build(const std::vector<ElfFile::Range>& code) {
  AddressMap<uint64_t> code_ends;
  for (const ElfFile::Range& range : code) code_ends.Add(range.begin, range.end, range.end);
  code_ends.Build();

  // Best name last: AddressMap lets the last of equal ranges win.
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    if (a.address != b.address) return a.address < b.address;
    if (a.name == b.name && a.rank == b.rank) return a.size < b.size;
    return IsBetterName(b, a);
  });
  // Exported symbols are in both .symtab and .dynsym.
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end(),
                             [](const Symbol& a, const Symbol& b) {
                               return a.address == b.address && a.size == b.size &&
                                      a.rank == b.rank && a.name == b.name;
                             }),
                 symbols_.end());
  size_t next = 0;  // the first symbol at a higher address
  for (size_t i = 0; i < symbols_.size(); ++i) {
    while (next < symbols_.size() && symbols_[next].address <= symbols_[i].address) ++next;
    const Symbol& symbol = symbols_[i];
    const uint64_t* code_end = code_ends.Find(symbol.address);
    if (code_end == nullptr) continue;
    const uint32_t index = static_cast<uint32_t>(i);
    if (symbol.size != 0) {
      const uint64_t end = symbol.size > *code_end - symbol.address ? *code_end
                                                                    : symbol.address + symbol.size;
      sized_.Add(symbol.address, end, index);
      continue;
    }
    uint64_t limit = next < symbols_.size() ? symbols_[next].address : *code_end;
    if (symbol.name == kLastOfCrtBegin) limit = std::min(limit, symbol.address + kMostBytesOfIt);
    unsized_.Add(symbol.address, std::min(limit, *code_end), index);
  }
  sized_.Build();
  unsized_.Build();
}

std::vector<SymbolTable::Symbol>::const_iterator SymbolTable::FirstAt(uint64_t address) const {
  return std::lower_bound(
      symbols_.begin(), symbols_.end(), address,
      [](const Symbol& symbol, uint64_t wanted) { return symbol.address < wanted; });
}

std::vector<std::string_view> SymbolTable::NamesAt(uint64_t address) const {
  std::vector<std::string_view> names;
  for (auto at = FirstAt(address); at != symbols_.end() && at->address == address; ++at)
    names.push_back(at->name);
  return names;
}

bool SymbolTable::HasLocalFunction(uint64_t address, std::string_view name) const {
  for (auto at = FirstAt(address); at != symbols_.end() && at->address == address; ++at) {
    if (at->IsLocalFunction() && at->name == name) return true;
  }
  return false;
}

bool SymbolTable::HasNamesThatBegin(std::string_view with) const {
  return std::any_of(symbols_.begin(), symbols_.end(),
                     [&](const Symbol& symbol) { return symbol.name.starts_with(with); });
}

const SymbolTable::Symbol* SymbolTable::Find(uint64_t address) const {
  const uint32_t* index = sized_.Find(address);
  if (index == nullptr) index = unsized_.Find(address);
  return index == nullptr ? nullptr : &symbols_[*index];
}

}  // namespace memtrace::symbolizer
