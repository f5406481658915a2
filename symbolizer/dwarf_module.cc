// DwarfModule. See dwarf_module.h.

#include "symbolizer/dwarf_module.h"

#include <dwarf.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_stamp.h"
#include "symbolizer/file_recorder.h"
#include "symbolizer/folded_functions.h"
#include "symbolizer/inline_frames.h"
#include "symbolizer/line_table.h"
#include "symbolizer/source_paths.h"
#include "symbolizer/split_unit.h"

namespace memtrace::symbolizer {
namespace {

// Offset of the next unit, or 0 at the end: a unit always moves on.
struct UnitHeader {
  Dwarf_Off next = 0;
  Dwarf_Off die = 0;
  Dwarf_Off abbreviations = 0;
  UnitShape shape;
};

bool ReadHeader(Dwarf* dwarf, Dwarf_Off offset, UnitHeader* header) {
  size_t header_bytes = 0;
  Dwarf_Half version = 0;
  uint8_t address_bytes = 0, offset_bytes = 0;
  if (dwarf_next_unit(dwarf, offset, &header->next, &header_bytes, &version,
                      &header->abbreviations, &address_bytes, &offset_bytes, nullptr,
                      nullptr) != 0) {
    return false;
  }
  header->die = offset + header_bytes;
  header->shape = {version, address_bytes, offset_bytes};
  return header->next > offset;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DwarfModule>> DwarfModule::Open(
    const ElfFile& file, const std::vector<ElfFile::Range>& code, const DebugFileFinder& finder) {
  std::unique_ptr<DwarfModule> module(new DwarfModule(code));
  module->path_ = file.path();
  module->dwarf_ = dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr);
  if (module->dwarf_ == nullptr) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": cannot read debug information: ", dwarf_errmsg(-1)));
  }
  module->OpenAlternate(file, finder);
  module->ReadUnits();
  if (module->units_.empty()) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": cannot read debug information: no units"));
  }
  return module;
}

DwarfModule::~DwarfModule() {
  if (dwarf_ != nullptr) dwarf_end(dwarf_);
}

void DwarfModule::OpenAlternate(const ElfFile& file, const DebugFileFinder& finder) {
  alternate_ = std::make_unique<AlternateFile>(dwarf_, file, finder);
  if (alternate_->missing().empty()) return;
  note_ = absl::StrCat(file.path(), ": its supplementary file ", alternate_->missing(),
                       " was not found; some functions stay without a name");
}

DwarfModule::Sections DwarfModule::SectionsOf(Dwarf* dwarf) {
  Sections sections;
  Elf* elf = dwarf_getelf(dwarf);
  size_t names = 0;
  if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0) return sections;
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf, scn)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = text == nullptr ? "" : text;
    std::string_view* section = nullptr;
    if (name == ".debug_info" || name == ".zdebug_info" || name == ".debug_info.dwo") {
      section = &sections.info;
    } else if (name == ".debug_abbrev" || name == ".zdebug_abbrev" ||
               name == ".debug_abbrev.dwo") {
      section = &sections.abbreviations;
    } else if (name == ".debug_line" || name == ".zdebug_line") {
      section = &sections.lines;
    }
    if (section == nullptr) continue;
    const Elf_Data* data = elf_rawdata(scn, nullptr);  // libdw has decompressed it in place
    if (data == nullptr || data->d_buf == nullptr) continue;
    *section = {static_cast<const char*>(data->d_buf), data->d_size};
  }
  return sections;
}

bool DwarfModule::FillBytes(Dwarf* dwarf, const Sections& sections, Dwarf_Off die_offset,
                            Dwarf_Off next, Dwarf_Off abbreviations, const UnitShape& shape,
                            UnitBytes* bytes) {
  if (die_offset >= sections.info.size() || abbreviations >= sections.abbreviations.size()) {
    return false;
  }
  const Dwarf_Off end = std::min<Dwarf_Off>(next, sections.info.size());
  if (end <= die_offset) return false;
  bytes->dwarf = dwarf;
  bytes->first_die = die_offset;
  bytes->dies = sections.info.substr(die_offset, end - die_offset);
  bytes->abbreviations = sections.abbreviations.substr(abbreviations);
  bytes->shape = shape;
  return true;
}

// A skeleton unit's functions are in a .dwo file, if it is still where it was.
void DwarfModule::FindSplit(Unit* unit) {
  SplitUnit split = SplitUnit::Of(&unit->die);
  if (!split.is_split) return;
  if (!split.found) {
    // An answer without it is good until it is there.
    if (split.name != nullptr) {
      SourcePaths paths(&unit->die);
      FileRecorder::Note(base::FileStamp::Of(paths.Of(split.name)));
    }
    if (!note_.empty()) return;
    note_ = absl::StrCat(path_, ": ", split.Missing(&unit->die),
                         "; what was inlined into its functions is missing");
    return;
  }
  Dwarf* dwarf = dwarf_cu_getdwarf(split.die.cu);
  const Sections sections = SectionsOf(dwarf);
  const Dwarf_Off wanted = dwarf_dieoffset(&split.die);
  UnitHeader header;
  for (Dwarf_Off offset = 0; ReadHeader(dwarf, offset, &header); offset = header.next) {
    if (header.die != wanted) continue;
    unit->has_split = FillBytes(dwarf, sections, header.die, header.next, header.abbreviations,
                                header.shape, &unit->bytes);
    unit->split_die = split.die;
    return;
  }
}

void DwarfModule::ReadUnits() {
  const Sections sections = SectionsOf(dwarf_);
  lines_ = sections.lines;
  absl::flat_hash_map<Dwarf_Off, uint32_t> old_units;  // by their first entry
  UnitHeader header;
  for (Dwarf_Off offset = 0; ReadHeader(dwarf_, offset, &header); offset = header.next) {
    Unit unit;
    if (dwarf_offdie(dwarf_, header.die, &unit.die) == nullptr) continue;
    const int tag = dwarf_tag(&unit.die);
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) continue;
    if (!FillBytes(dwarf_, sections, header.die, header.next, header.abbreviations, header.shape,
                   &unit.bytes)) {
      continue;
    }
    const uint32_t index = static_cast<uint32_t>(units_.size());
    bool has_ranges = false;
    Dwarf_Addr base, begin, end;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(&unit.die, next, &base, &begin, &end)) > 0;) {
      has_ranges = true;
      if (code_.Has(begin, end)) unit_of_.Add(begin, end, index);
    }
    if (!has_ranges && dwarf_haschildren(&unit.die) > 0) units_without_ranges_.push_back(index);
    if (header.shape.version == 2) old_units.emplace(header.die, index);
    units_.push_back(unit);
  }
  if (!old_units.empty()) AddAddressRanges(old_units);
  unit_of_.Build();
}

// DWARF 2 has no lists of ranges: gcc's units then say what they have in .text, and .debug_aranges
// what they have elsewhere (.text.startup, .text.unlikely).
void DwarfModule::AddAddressRanges(const absl::flat_hash_map<Dwarf_Off, uint32_t>& units) {
  Dwarf_Aranges* ranges = nullptr;
  size_t count = 0;
  if (dwarf_getaranges(dwarf_, &ranges, &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    Dwarf_Addr begin = 0;
    Dwarf_Word length = 0;
    Dwarf_Off die = 0;
    if (dwarf_getarangeinfo(dwarf_onearange(ranges, i), &begin, &length, &die) != 0) continue;
    const auto unit = units.find(die);
    if (unit != units.end() && code_.Has(begin, begin + length)) {
      unit_of_.Add(begin, begin + length, unit->second);
    }
  }
}

void DwarfModule::Resolve(std::span<const uint64_t> addresses,
                          std::span<std::vector<Frame>> frames) {
  // Addresses of one unit are gathered first: its ranges may lie far apart.
  std::vector<std::pair<uint32_t, uint32_t>> by_unit;  // (unit, address index)
  std::vector<uint32_t> unclaimed;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const uint32_t* unit = unit_of_.Find(addresses[i]);
    if (unit != nullptr) {
      by_unit.emplace_back(*unit, static_cast<uint32_t>(i));
    } else {
      unclaimed.push_back(static_cast<uint32_t>(i));
    }
  }
  std::sort(by_unit.begin(), by_unit.end());

  std::vector<uint64_t> wanted;
  std::vector<std::vector<Frame>> found;
  auto resolve = [&](uint32_t unit, auto index_of, size_t count) {
    wanted.clear();
    for (size_t i = 0; i < count; ++i) wanted.push_back(addresses[index_of(i)]);
    found.assign(count, {});
    ResolveInUnit(&units_[unit], wanted, found);
    for (size_t i = 0; i < count; ++i) {
      if (!found[i].empty()) frames[index_of(i)] = std::move(found[i]);
    }
  };
  for (size_t first = 0; first < by_unit.size();) {
    size_t last = first;
    while (last < by_unit.size() && by_unit[last].first == by_unit[first].first) ++last;
    resolve(by_unit[first].first, [&](size_t i) { return by_unit[first + i].second; },
            last - first);
    first = last;
  }
  for (uint32_t unit : units_without_ranges_) {
    if (unclaimed.empty()) break;
    resolve(unit, [&](size_t i) { return unclaimed[i]; }, unclaimed.size());
    std::erase_if(unclaimed, [&](uint32_t index) { return !frames[index].empty(); });
  }
}

void DwarfModule::ResolveInUnit(Unit* unit, std::span<const uint64_t> addresses,
                                std::span<std::vector<Frame>> frames) {
  FindSplit(unit);
  ScannedFunctions functions = scanner_.Scan(unit->bytes, addresses);
  if (functions.damaged && note_.empty()) {
    note_ = absl::StrCat(path_, ": debug information is damaged near .debug_info+0x",
                         absl::Hex(unit->bytes.first_die), "; some functions stay unknown");
  }
  DropFolded(
      unit->bytes.dwarf,
      [&](const std::vector<uint64_t>& begins) {
        const LineTable table(&unit->die, lines_, code_, begins);
        std::vector<LineTable::Row> rows;
        for (size_t i = 0; i < begins.size(); ++i) rows.push_back(table.At(i));
        return rows;
      },
      &functions);
  SourcePaths paths(&unit->die);
  InlineFrames inline_frames(unit->bytes.dwarf, unit->has_split ? unit->split_die : unit->die,
                             std::move(functions), &names_, &paths);
  const LineTable lines(&unit->die, lines_, code_, addresses);
  if (lines.damaged() && !lines_.empty() && note_.empty()) {
    note_ = absl::StrCat(path_, ": the line table of the unit at .debug_info+0x",
                         absl::Hex(dwarf_dieoffset(&unit->die)),
                         " is damaged; some lines stay unknown");
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    const LineTable::Row row = lines.At(i);
    std::vector<Frame>& chain = frames[i];
    chain = inline_frames.Find(addresses[i]);
    if (chain.empty()) {
      if (row.file == nullptr) continue;
      chain.emplace_back();
    }
    if (row.file != nullptr) chain.front().file = paths.Of(row.file);
    chain.front().line = row.line;
  }
}

}  // namespace memtrace::symbolizer
