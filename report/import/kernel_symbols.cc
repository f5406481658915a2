#include "report/import/kernel_symbols.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace memtrace::report::import {
namespace {

// No function is longer; behind it there is other memory.
constexpr uint64_t kLongestFunction = 1 << 20;

bool IsCode(absl::string_view type) {
  return type.size() == 1 && absl::StrContains("tTwWvV", type);
}

}  // namespace

absl::Status KernelSymbols::Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  size_t number = 0, zeros = 0;
  uint64_t text_begin = 0, text_end = 0;
  const size_t before = symbols_.size();
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    uint64_t address;
    if (words.size() < 3 || words.size() > 4 || words[0].size() > 16 ||
        !absl::SimpleHexAtoi(words[0], &address)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": line ", number, " is not \"ADDRESS TYPE NAME\", as in System.map "
                       "and /proc/kallsyms"));
    }
    zeros += address == 0;
    absl::string_view module = words.size() == 4 ? words[3] : "";
    if (absl::ConsumePrefix(&module, "[")) absl::ConsumeSuffix(&module, "]");
    if (module.empty() && words[2] == "_stext") text_begin = address;
    if (module.empty() && words[2] == "_etext") text_end = address;
    if (!IsCode(words[1]) || address == 0) continue;
    symbols_.push_back({address, std::string(words[2]), std::string(module)});
  }
  if (symbols_.size() == before) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, zeros > 0
                  ? ": every address in it is 0; copy /proc/kallsyms as root"
                  : " has no functions: it is neither a System.map nor a copy of /proc/kallsyms"));
  }
  if (text_begin < text_end) code_.emplace_back(text_begin, text_end);
  std::stable_sort(
      symbols_.begin(), symbols_.end(),
      [](const KernelSymbol& a, const KernelSymbol& b) { return a.address < b.address; });
  by_name_.clear();
  for (const KernelSymbol& symbol : symbols_) {
    const auto [at, is_new] =
        by_name_.try_emplace({symbol.name, symbol.module}, symbol.address);
    if (!is_new && at->second != symbol.address) at->second = 0;
  }
  return absl::OkStatus();
}

const KernelSymbol* KernelSymbols::Find(uint64_t address) const {
  auto next = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](uint64_t wanted, const KernelSymbol& symbol) { return wanted < symbol.address; });
  if (next == symbols_.begin()) return nullptr;
  const KernelSymbol& found = *--next;
  if (address - found.address > kLongestFunction) return nullptr;
  if (found.module.empty() && !code_.empty()) {
    const bool in_code = std::any_of(code_.begin(), code_.end(), [&](const auto& range) {
      return range.first <= address && address < range.second;
    });
    if (!in_code) return nullptr;
  }
  // If an address has several names, the first in the file is taken: the later ones are aliases.
  while (next != symbols_.begin() && (next - 1)->address == found.address) --next;
  return &*next;
}

uint64_t KernelSymbols::AddressOf(absl::string_view name, absl::string_view module) const {
  const auto at = by_name_.find({std::string(name), std::string(module)});
  return at == by_name_.end() ? 0 : at->second;
}

}  // namespace memtrace::report::import
