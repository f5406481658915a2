// DwarfModule: the debug information of one file.
//
//   addresses (sorted) -> units, by a map of the ranges in the unit DIEs
//   each unit, once    -> functions and inlined calls (InlineFrames),
//                         files and lines (LineTable)
//
// The map is our own: .debug_aranges, which libdw would use, is left out by
// clang. Ranges outside the module's code are dropped: linkers leave functions
// they removed at address 0 or -1. A unit that states no ranges is scanned for
// the addresses that no other unit claims.

#ifndef MEMTRACE_SYMBOLIZER_DWARF_MODULE_H_
#define MEMTRACE_SYMBOLIZER_DWARF_MODULE_H_

#include <elfutils/libdw.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "symbolizer/address_map.h"
#include "symbolizer/alternate_file.h"
#include "symbolizer/code_ranges.h"
#include "symbolizer/debug_file_finder.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/function_names.h"
#include "symbolizer/function_scanner.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

class DwarfModule {
 public:
  // `file` must outlive the result. `code` is where the module has code.
  static absl::StatusOr<std::unique_ptr<DwarfModule>> Open(
      const ElfFile& file, const std::vector<ElfFile::Range>& code,
      const DebugFileFinder& finder);
  ~DwarfModule();
  DwarfModule(const DwarfModule&) = delete;
  DwarfModule& operator=(const DwarfModule&) = delete;

  // `addresses` is sorted and without repetition; `frames` has as many entries.
  // What is not known stays empty.
  void Resolve(std::span<const uint64_t> addresses, std::span<std::vector<Frame>> frames);

  // One line for a person about what was wrong; empty: nothing was.
  const std::string& note() const { return note_; }

 private:
  struct Unit {
    Dwarf_Die die;
    UnitBytes bytes;
    bool has_split = false;  // die is a skeleton, split_die has the functions
    Dwarf_Die split_die;
  };
  // The sections that are read as bytes.
  struct Sections {
    std::string_view info;
    std::string_view abbreviations;
    std::string_view lines;
  };

  explicit DwarfModule(const std::vector<ElfFile::Range>& code) : code_(code) {}
  void ReadUnits();
  void AddAddressRanges(const absl::flat_hash_map<Dwarf_Off, uint32_t>& units);
  void OpenAlternate(const ElfFile& file, const DebugFileFinder& finder);
  void ResolveInUnit(Unit* unit, std::span<const uint64_t> addresses,
                     std::span<std::vector<Frame>> frames);
  static Sections SectionsOf(Dwarf* dwarf);
  static bool FillBytes(Dwarf* dwarf, const Sections& sections, Dwarf_Off die_offset,
                        Dwarf_Off next, Dwarf_Off abbreviations, const UnitShape& shape,
                        UnitBytes* bytes);
  void FindSplit(Unit* unit);

  const CodeRanges code_;
  std::unique_ptr<AlternateFile> alternate_;
  Dwarf* dwarf_ = nullptr;
  std::string_view lines_;  // .debug_line
  std::vector<Unit> units_;
  AddressMap<uint32_t> unit_of_;  // index into units_
  std::vector<uint32_t> units_without_ranges_;
  FunctionScanner scanner_{code_};
  FunctionNames names_;
  std::string path_, note_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DWARF_MODULE_H_
