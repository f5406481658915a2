// FunctionScanner: the pass over a unit. See function_scanner.h.

#include "symbolizer/function_scanner.h"

#include <dwarf.h>

#include <algorithm>

namespace memtrace::symbolizer {
namespace {

bool ContainsWanted(std::span<const uint64_t> wanted, uint64_t begin, uint64_t end) {
  const auto it = std::lower_bound(wanted.begin(), wanted.end(), begin);
  return it != wanted.end() && *it < end;
}

// The slow, general way: libdw knows every form and both range list formats.
void RangesFromLibdw(Dwarf* dwarf, Dwarf_Off offset, std::vector<FunctionRange>* ranges) {
  Dwarf_Die die;
  if (dwarf_offdie(dwarf, offset, &die) == nullptr) return;
  Dwarf_Addr base, begin, end;
  for (ptrdiff_t next = 0; (next = dwarf_ranges(&die, next, &base, &begin, &end)) > 0;) {
    ranges->push_back({begin, end, 0});
  }
}

bool IsConstant(uint16_t form) {
  switch (form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_implicit_const:
      return true;
    default:
      return false;
  }
}

// Where the scan stands in the tree: one entry for each DIE with open children.
struct Level {
  uint32_t function;    // the innermost function around the children, kNone if none
  bool inlines_wanted;  // does that function contain a wanted address?
  // The ranges of the subprogram around them: ScannedFunctions::ranges[first, last).
  size_t first_range, last_range;
};

}  // namespace

// Appends the parts of `ranges` that contain a wanted address and are of `inside`. Is there one?
bool FunctionScanner::Keep(std::span<const FunctionRange> ranges,
                           std::span<const uint64_t> wanted, const RangesInside& inside,
                           std::vector<FunctionRange>* kept) {
  const size_t before = kept->size();
  for (const FunctionRange& range : ranges) {
    if (!inside.inlined) {
      if (ContainsWanted(wanted, range.begin, range.end) && code_.Has(range.begin, range.end)) {
        kept->push_back({range.begin, range.end, inside.function});
      }
      continue;
    }
    for (size_t i = inside.first; i < inside.last; ++i) {
      const uint64_t begin = std::max(range.begin, (*kept)[i].begin);
      const uint64_t end = std::min(range.end, (*kept)[i].end);
      if (begin < end && ContainsWanted(wanted, begin, end)) {
        kept->push_back({begin, end, inside.function});
      }
    }
  }
  return kept->size() > before;
}

// Reads one function DIE to its end. Ranges are appended with function 0.
bool FunctionScanner::ReadFunction(const UnitBytes& unit, const Abbreviation& abbreviation,
                                   Dwarf_Off offset, ByteCursor* cursor,
                                   std::vector<FunctionRange>* ranges) {
  uint64_t low = 0, high = 0;
  bool has_low = false, has_high = false, high_is_offset = false, ask_libdw = false;
  for (const Abbreviation::Attribute& attribute : abbreviation.attributes) {
    const bool is_low = attribute.name == DW_AT_low_pc;
    const bool is_high = attribute.name == DW_AT_high_pc;
    if (attribute.name == DW_AT_ranges) ask_libdw = true;
    if (is_low || is_high) {
      uint64_t* value = is_low ? &low : &high;
      if (attribute.form == DW_FORM_addr && unit.shape.address_bytes <= 8) {
        *value = cursor->Fixed(unit.shape.address_bytes);
        (is_low ? has_low : has_high) = true;
        continue;
      }
      if (is_high && IsConstant(attribute.form)) {
        has_high = high_is_offset = true;
        if (attribute.form == DW_FORM_udata) {
          high = cursor->Leb();
        } else if (attribute.form == DW_FORM_implicit_const) {
          high = static_cast<uint64_t>(attribute.implicit_const);
        } else {
          high = cursor->Fixed(attribute.form == DW_FORM_data1   ? 1
                               : attribute.form == DW_FORM_data2 ? 2
                               : attribute.form == DW_FORM_data4 ? 4
                                                                 : 8);
        }
        continue;
      }
      ask_libdw = true;
    }
    Abbreviation::Op op;
    if (!StepOfForm(attribute.form, unit.shape, &op) || !TakeStep(op, unit.shape, cursor)) {
      return false;
    }
  }
  if (!cursor->ok()) return false;
  if (ask_libdw) {
    RangesFromLibdw(unit.dwarf, offset, ranges);
  } else if (has_low && has_high) {
    ranges->push_back({low, high_is_offset ? low + high : high, 0});
  }
  return true;
}

ScannedFunctions FunctionScanner::Scan(const UnitBytes& unit, std::span<const uint64_t> wanted) {
  ScannedFunctions result;
  if (abbreviations_at_ != unit.abbreviations.data() || !(abbreviations_shape_ == unit.shape)) {
    abbreviations_at_ = nullptr;
    if (!abbreviations_.Read(unit.abbreviations, unit.shape)) {
      result.damaged = true;
      return result;
    }
    abbreviations_at_ = unit.abbreviations.data();
    abbreviations_shape_ = unit.shape;
  }

  ByteCursor cursor(unit.dies);
  std::vector<Level> levels;
  std::vector<FunctionRange> ranges;
  Level here = {ScannedFunction::kNone, false, 0, 0};
  while (!cursor.AtEnd()) {
    const Dwarf_Off offset = unit.first_die + cursor.position();
    const uint64_t code = cursor.Leb();
    if (code == 0) {  // the end of the children
      if (levels.empty()) break;
      here = levels.back();
      levels.pop_back();
      if (levels.empty()) break;  // back at the unit DIE: the rest is padding
      continue;
    }
    const Abbreviation* abbreviation = abbreviations_.Find(code);
    if (abbreviation == nullptr) {
      result.damaged = true;
      break;
    }
    Level inside = here;
    const bool inlined = abbreviation->tag == DW_TAG_inlined_subroutine;
    if (abbreviation->is_function && (!inlined || here.inlines_wanted)) {
      ranges.clear();
      if (!ReadFunction(unit, *abbreviation, offset, &cursor, &ranges)) {
        result.damaged = true;
        break;
      }
      const uint32_t index = static_cast<uint32_t>(result.functions.size());
      const size_t first = result.ranges.size();
      if (Keep(ranges, wanted, {index, inlined, here.first_range, here.last_range},
               &result.ranges)) {
        result.functions.push_back({offset, inlined ? here.function : ScannedFunction::kNone});
        inside.function = index;
        inside.inlines_wanted = true;
        if (!inlined) {
          inside.first_range = first;
          inside.last_range = result.ranges.size();
        }
      } else {
        inside = {ScannedFunction::kNone, false, 0, 0};
      }
    } else {
      for (const Abbreviation::Op& op : abbreviation->ops) {
        if (!TakeStep(op, unit.shape, &cursor)) {
          result.damaged = true;
          return result;
        }
      }
    }
    if (abbreviation->has_children) {
      levels.push_back(here);
      here = inside;
    } else if (levels.empty()) {
      break;  // a unit DIE without children
    }
  }
  if (!cursor.ok()) result.damaged = true;
  return result;
}

}  // namespace memtrace::symbolizer
