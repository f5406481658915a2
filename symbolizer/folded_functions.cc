// DropFolded(). See folded_functions.h.

#include "symbolizer/folded_functions.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace memtrace::symbolizer {
namespace {

using FoldedRange = std::pair<uint64_t, uint64_t>;

// dwarf_decl_file() takes 0 for none, which in DWARF 5 is the first file of all.
const char* DeclaringFile(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Word index = 0;
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) == nullptr ||
      dwarf_formudata(&attribute, &index) != 0 ||
      dwarf_diecu(die, &unit, nullptr, nullptr) == nullptr ||
      dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count) {
    return nullptr;
  }
  return dwarf_filesrc(files, index, nullptr, nullptr);
}

// The line a function is declared on, if that is in the file of `row` and not
// behind its line; else -1.
int DeclaredBefore(Dwarf* dwarf, Dwarf_Off offset, const LineTable::Row& row) {
  Dwarf_Die die;
  int line = 0;
  if (row.file == nullptr || dwarf_offdie(dwarf, offset, &die) == nullptr ||
      dwarf_decl_line(&die, &line) != 0 || line < 0 || static_cast<uint32_t>(line) > row.line) {
    return -1;
  }
  const char* file = DeclaringFile(&die);
  return file != nullptr && std::strcmp(file, row.file) == 0 ? line : -1;
}

}  // namespace

void DropFolded(
    Dwarf* dwarf,
    const std::function<std::vector<LineTable::Row>(const std::vector<uint64_t>&)>& rows,
    ScannedFunctions* functions) {
  // The ranges of subprograms, with their functions: the folded ones side by side.
  std::vector<std::pair<FoldedRange, uint32_t>> ranges;
  for (const FunctionRange& range : functions->ranges) {
    if (functions->functions[range.function].parent == ScannedFunction::kNone) {
      ranges.push_back({{range.begin, range.end}, range.function});
    }
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<uint64_t> begins;
  for (size_t i = 1; i < ranges.size(); ++i) {
    const uint64_t begin = ranges[i].first.first;
    if (ranges[i].first == ranges[i - 1].first && (begins.empty() || begins.back() != begin)) {
      begins.push_back(begin);
    }
  }
  if (begins.empty()) return;

  const std::vector<LineTable::Row> found = rows(begins);
  std::vector<bool> dropped(functions->functions.size());
  for (size_t first = 0; first < ranges.size();) {
    size_t last = first + 1;
    while (last < ranges.size() && ranges[last].first == ranges[first].first) ++last;
    if (last - first > 1) {
      const auto at = std::lower_bound(begins.begin(), begins.end(), ranges[first].first.first);
      const LineTable::Row& row = found[static_cast<size_t>(at - begins.begin())];
      size_t best = first;
      int best_line = -1;
      for (size_t i = first; i < last; ++i) {
        const int line =
            DeclaredBefore(dwarf, functions->functions[ranges[i].second].offset, row);
        if (line >= best_line) {
          best = i;
          best_line = line;
        }
      }
      for (size_t i = first; i < last; ++i) {
        if (i != best) dropped[ranges[i].second] = true;
      }
    }
    first = last;
  }
  // An inlined function comes after the function that it is in.
  for (size_t i = 0; i < dropped.size(); ++i) {
    const uint32_t parent = functions->functions[i].parent;
    if (parent != ScannedFunction::kNone && dropped[parent]) dropped[i] = true;
  }
  std::erase_if(functions->ranges,
                [&](const FunctionRange& range) { return dropped[range.function]; });
}

}  // namespace memtrace::symbolizer
