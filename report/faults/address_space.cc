#include "report/faults/address_space.h"

#include <algorithm>
#include "report/base/page.h"

namespace memtrace::report {
namespace {

bool IsKernels(std::string_view name) {
  return name == "[vdso]" || name.starts_with("[vvar") || name == "[vsyscall]";
}

}  // namespace

AddressSpace::AddressSpace(const TraceMetadata& metadata) {
  for (const ModuleRecord& record : metadata.modules) {
    const ModuleInfo& info = record.info;
    modules_.push_back(
        {info.start, info.end, (info.flags & format::kModuleTracer) != 0, info.path});
  }
  std::stable_sort(modules_.begin(), modules_.end(),
                   [](const Module& a, const Module& b) { return a.begin < b.begin; });
  if (metadata.map_at_end.has_value()) AddMap(metadata.map_at_end->text);
  if (metadata.map_at_start.has_value()) AddMap(metadata.map_at_start->text);
}

const AddressSpace::Module* AddressSpace::ModuleOf(uint64_t address) const {
  auto after = std::upper_bound(modules_.begin(), modules_.end(), address,
                                [](uint64_t a, const Module& m) { return a < m.begin; });
  if (after == modules_.begin()) return nullptr;
  const Module& module = *(after - 1);
  return address < module.end ? &module : nullptr;
}

void AddressSpace::AddLine(const std::vector<MapLine>& lines, size_t at,
                           std::vector<Region>* regions) const {
  const MapLine& line = lines[at];
  Region region{line.begin, line.end, MemoryKind::kUnknown, std::string(line.name)};
  const bool writable = line.permissions[1] == 'w', code = line.permissions[2] == 'x';
  const bool shared = line.permissions[3] == 's';
  const Module* module = shared ? nullptr : ModuleOf(line.begin);
  if (IsTraceMapping(line) || line.name.starts_with("anon_inode:[perf_event]") ||
      line.name == "[anon:memtrace]" || (module != nullptr && module->tool)) {
    region.kind = MemoryKind::kTool;
  } else if (IsKernels(line.name)) {
    region.kind = MemoryKind::kKernel;
  } else if (line.name.starts_with("[stack")) {
    region.kind = MemoryKind::kStack;
  } else if (line.name == "[heap]") {
    region.kind = MemoryKind::kAllocator;
  } else if (shared) {
    region.kind = line.anonymous() ? MemoryKind::kShared : MemoryKind::kFile;
  } else if (module != nullptr) {
    region.name = module->path;
    region.kind = code ? MemoryKind::kText
                  : line.anonymous() ? MemoryKind::kBss
                  : writable ? MemoryKind::kData
                             : MemoryKind::kReadOnly;
    // The kernel merges what follows the .bss with it.
    if (line.anonymous() && region.end > module->end) {
      const uint64_t page_end = WholePages(module->end);
      if (page_end < region.end) {
        regions->push_back({page_end, region.end, MemoryKind::kAllocator, ""});
        region.end = page_end;
      }
    }
  } else if (!line.anonymous()) {
    region.kind = MemoryKind::kFile;
  } else if (IsGuarded(lines, at)) {
    region.kind = MemoryKind::kStack;
  } else if (writable) {
    region.kind = MemoryKind::kAllocator;
  }
  regions->push_back(std::move(region));
}

std::vector<AddressSpace::Region> AddressSpace::Classify(const std::vector<MapLine>& lines) const {
  std::vector<Region> regions;
  for (size_t i = 0; i < lines.size(); ++i) AddLine(lines, i, &regions);
  std::stable_sort(regions.begin(), regions.end(),
                   [](const Region& a, const Region& b) { return a.begin < b.begin; });
  return regions;
}

void AddressSpace::AddMap(std::string_view text) {
  maps_.push_back(Classify(LinesOf(text)));
}

const AddressSpace::Region* AddressSpace::FindIn(const std::vector<Region>& regions,
                                                 uint64_t address) const {
  auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                [](uint64_t a, const Region& r) { return a < r.begin; });
  if (after == regions.begin()) return nullptr;
  const Region& region = *(after - 1);
  return address < region.end ? &region : nullptr;
}

const AddressSpace::Region* AddressSpace::Find(uint64_t address) const {
  for (const std::vector<Region>& regions : maps_) {
    if (const Region* region = FindIn(regions, address)) return region;
  }
  return nullptr;
}

bool AddressSpace::IsTool(uint64_t pc) const {
  const Module* module = ModuleOf(pc);
  return module != nullptr && module->tool;
}

}  // namespace memtrace::report
