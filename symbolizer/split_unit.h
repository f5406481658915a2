// SplitUnit: what a unit of split DWARF has in its .dwo file, which is beside the file
// that was linked, or gone.

#ifndef MEMTRACE_SYMBOLIZER_SPLIT_UNIT_H_
#define MEMTRACE_SYMBOLIZER_SPLIT_UNIT_H_

#include <elfutils/libdw.h>

#include <string>

namespace memtrace::symbolizer {

struct SplitUnit {
  bool is_split = false;       // the unit is a skeleton, whose entries are elsewhere
  bool found = false;
  Dwarf_Die die = {};          // where they were found
  const char* name = nullptr;  // of the .dwo file; nullptr: not said

  static SplitUnit Of(Dwarf_Die* unit);
  // Says why a split unit was not found: "app.dwo was not found", or that the file is there and has
  // nothing of the unit.
  std::string Missing(Dwarf_Die* unit) const;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SPLIT_UNIT_H_
