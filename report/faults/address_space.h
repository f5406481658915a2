// AddressSpace: what lies where in the traced process, as far as its memory maps and modules
// tell: for addresses that are in no live block and no mapping of the program's own.
//
// The trace has the map of the start and that of the end or of the last growth; what was
// mapped and unmapped in between is not in them. Built once, then constant.

#ifndef MEMTRACE_REPORT_FAULTS_ADDRESS_SPACE_H_
#define MEMTRACE_REPORT_FAULTS_ADDRESS_SPACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/base/map_line.h"
#include "report/findings/fault_details.h"
#include "report/model/memory_map.h"
#include "report/trace/trace_metadata.h"

namespace memtrace::report {

class AddressSpace {
 public:
  struct Region {
    uint64_t begin = 0, end = 0;
    MemoryKind kind = MemoryKind::kUnknown;
    std::string name;  // of the module or file
  };

  explicit AddressSpace(const TraceMetadata& metadata);

  // nullptr: in no map that the trace has.
  const Region* Find(uint64_t address) const;

  // Tells what each mapping is, by address; one that the kernel merged may become several regions.
  // `lines` are all mappings of the process at a moment, by address.
  std::vector<Region> Classify(const std::vector<MapLine>& lines) const;

  // Whether the instruction at `pc` is in libmemtrace.so.
  bool IsTool(uint64_t pc) const;

 private:
  void AddMap(std::string_view text);
  void AddLine(const std::vector<MapLine>& lines, size_t at, std::vector<Region>* regions) const;
  const Region* FindIn(const std::vector<Region>& regions, uint64_t address) const;

  struct Module {
    uint64_t begin = 0, end = 0;
    bool tool = false;
    std::string path;
  };
  const Module* ModuleOf(uint64_t address) const;

  std::vector<Module> modules_;               // by begin, the latest of several last
  std::vector<std::vector<Region>> maps_;     // the latest first; each by begin
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_ADDRESS_SPACE_H_
