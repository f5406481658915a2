// CodeRanges: where a module has code, to tell functions that are in the file from those that are
// only in its debug information.
//
// A linker that removes a function (--gc-sections, the second copy of a template) leaves what was
// said of it: its addresses are then 0, 1 or -1, plus the offset in the function, and a large
// function reaches from there into addresses that others have.
//
// Addresses are of the module, as linked. Never changed once built: any number of threads.

#ifndef MEMTRACE_SYMBOLIZER_CODE_RANGES_H_
#define MEMTRACE_SYMBOLIZER_CODE_RANGES_H_

#include <cstdint>
#include <vector>

#include "symbolizer/address_map.h"
#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {

class CodeRanges {
 public:
  CodeRanges() = default;
  explicit CodeRanges(const std::vector<ElfFile::Range>& ranges) {
    for (const ElfFile::Range& range : ranges) map_.Add(range.begin, range.end, true);
    map_.Build();
  }

  bool Has(uint64_t address) const { return map_.Find(address) != nullptr; }
  // Do both ends of [begin, end) lie in code?
  bool Has(uint64_t begin, uint64_t end) const { return begin < end && Has(begin) && Has(end - 1); }

 private:
  AddressMap<bool> map_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_CODE_RANGES_H_
