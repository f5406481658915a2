#include "symbolizer/call_targets.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace memtrace::symbolizer {
namespace {

// Where the four bytes in front of `return_address`, the last of `code`, lead from there.
uint64_t Destination(std::string_view code, uint64_t return_address) {
  int32_t displacement;
  std::memcpy(&displacement, code.data() + code.size() - sizeof displacement, sizeof displacement);
  return return_address + static_cast<uint64_t>(static_cast<int64_t>(displacement));
}

// The names of the operators begin so: new, new[], delete, delete[].
constexpr std::string_view kNew = "_Znw", kNewArray = "_Zna", kDelete = "_Zdl",
                           kDeleteArray = "_Zda";

// One of those; empty: no operator new or delete.
std::string_view OperatorKind(std::string_view name) {
  const std::string_view start = name.substr(0, 4);
  const bool is_operator =
      start == kNew || start == kNewArray || start == kDelete || start == kDeleteArray;
  return is_operator ? start : std::string_view();
}

// One of them is an operator new or delete, and another is something else.
bool IsFoldedOperator(const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    if (OperatorKind(name) != OperatorKind(names.front())) return true;
  }
  return false;
}

}  // namespace

CallTargets::CallTargets(const ElfFile& module, const SymbolTable& symbols, const PltNames& plt)
    : symbols_(symbols), plt_(plt) {
  if (module.machine() != EM_X86_64) return;
  for (ElfSection& section : module.SectionsOfType(SHT_PROGBITS)) {
    if ((section.header.sh_flags & SHF_EXECINSTR) != 0) code_.push_back(section);
  }
  // mold's --icf keeps one name of those that it folds.
  if (module.Section(".comment").data.find("mold ") == std::string_view::npos) return;
  for (const auto& [one, other] : {std::pair(kNew, kNewArray), std::pair(kDelete, kDeleteArray)}) {
    if (symbols_.HasNamesThatBegin(one) == symbols_.HasNamesThatBegin(other)) continue;
    unsure_.push_back(one);
    unsure_.push_back(other);
  }
}

bool CallTargets::IsUnsure(std::string_view name) const {
  return std::find(unsure_.begin(), unsure_.end(), OperatorKind(name)) != unsure_.end();
}

std::string CallTargets::Find(uint64_t return_address) const {
  for (const ElfSection& section : code_) {
    const uint64_t begin = section.header.sh_addr;
    if (return_address < begin || return_address - begin > section.data.size()) continue;
    const std::string_view code = section.data.substr(0, return_address - begin);
    constexpr size_t kCall = 5, kCallByWord = 6;
    if (code.size() >= kCall && code[code.size() - kCall] == '\xe8') {
      const uint64_t target = Destination(code, return_address);
      if (const std::string* stub = plt_.Find(target); stub != nullptr) return *stub;
      const SymbolTable::Symbol* symbol = symbols_.Find(target);
      if (symbol != nullptr && symbol->address == target) {
        return IsFoldedOperator(symbols_.NamesAt(target)) || IsUnsure(symbol->name) ? ""
                                                                                    : symbol->name;
      }
    }
    if (code.size() >= kCallByWord &&
        code.substr(code.size() - kCallByWord, 2) == std::string_view("\xff\x15", 2)) {
      const std::string* name = plt_.FindGotWord(Destination(code, return_address));
      if (name != nullptr) return *name;
    }
    return "";
  }
  return "";
}

}  // namespace memtrace::symbolizer
