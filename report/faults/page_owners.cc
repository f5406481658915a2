#include "report/faults/page_owners.h"

#include <algorithm>
#include <string_view>

#include "report/base/map_line.h"
#include "report/model/shared_memory.h"

namespace memtrace::report {
namespace {

using Kind = MappingSite::Kind;

std::vector<AddressSpace::Region> Regions(const RawSnapshot& snapshot, const AddressSpace& space) {
  std::vector<MapLine> lines;
  lines.reserve(snapshot.mappings.size());
  for (const SnapshotMapping& mapping : snapshot.mappings) {
    lines.push_back({.begin = mapping.begin,
                     .end = mapping.end,
                     .permissions = mapping.permissions,
                     .inode = mapping.inode,
                     .name = mapping.path});
  }
  return space.Classify(lines);
}

// The last of `sorted` that begins at `address` or below.
template <typename T, typename Begin>
const T* LastAt(const std::vector<T>& sorted, uint64_t address, Begin begin) {
  auto after = std::upper_bound(sorted.begin(), sorted.end(), address,
                                [&](uint64_t a, const T& each) { return a < begin(each); });
  return after == sorted.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

PageOwners::PageOwners(const RawSnapshot& snapshot, const AddressSpace& space,
                       const MappingModel& mappings)
    : own_(snapshot.own), mappings_(mappings), regions_(Regions(snapshot, space)) {}

RssPart PageOwners::PartOf(const AddressSpace::Region* region,
                           const SnapshotMapping& mapping) const {
  switch (region != nullptr ? region->kind : MemoryKind::kUnknown) {
    case MemoryKind::kTool: return RssPart::kTool;
    case MemoryKind::kText: return RssPart::kCode;
    case MemoryKind::kData:
    case MemoryKind::kBss:
    case MemoryKind::kReadOnly: return RssPart::kData;
    case MemoryKind::kStack: return RssPart::kStacks;
    default: break;
  }
  if (mapping.path.find(".mtr") != std::string::npos && mapping.permissions == "rw-s") {
    return RssPart::kTool;
  }
  if (mapping.permissions[3] == 's' && (mapping.inode == 0 || IsSharedMemory(mapping.path))) {
    return RssPart::kShared;
  }
  return mapping.inode != 0 ? RssPart::kMappedFiles : RssPart::kOther;
}

void PageOwners::Begin(const SnapshotMapping& mapping, bool has_blocks) {
  mapping_ = &mapping;
  const auto begin = [](const AddressSpace::Region& region) { return region.begin; };
  whole_ = PartOf(LastAt(regions_, mapping.begin, begin), mapping);
  anonymous_ = mapping.anonymous();
  const bool arena = mapping.path.empty() && mapping.begin % kArenaBytes == 0;
  if (whole_ == RssPart::kOther && anonymous_ &&
      (mapping.path == "[heap]" || has_blocks || arena)) {
    whole_ = RssPart::kRetained;
  }
}

PageOwners::Stretch PageOwners::At(uint64_t address) const {
  uint64_t end = mapping_->end;
  if (!anonymous_) return {whole_, end};
  const auto own_begin = [](const std::pair<uint64_t, uint64_t>& range) { return range.first; };
  const auto* own = LastAt(own_, address, own_begin);
  if (own != nullptr && address < own->second) return {RssPart::kTool, std::min(end, own->second)};
  const auto* const next_own = own == nullptr ? own_.data() : own + 1;
  if (next_own != own_.data() + own_.size()) end = std::min(end, next_own->first);

  const auto begin = [](const AddressSpace::Region& region) { return region.begin; };
  const AddressSpace::Region* region = LastAt(regions_, address, begin);
  RssPart part = whole_;
  if (region != nullptr) {
    if (address < region->end) {
      if (region->begin != mapping_->begin || region->end != mapping_->end) {
        // A part of what the kernel merged.
        part = PartOf(region, *mapping_);
        if (part == RssPart::kOther && whole_ == RssPart::kRetained) part = whole_;
      }
      end = std::min(end, region->end);
    }
    const AddressSpace::Region* const next = region + 1;
    if (next != regions_.data() + regions_.size()) end = std::min(end, next->begin);
  }
  // The kernel's names and modules are sure; a call is known where nothing else is.
  if (part != RssPart::kOther && part != RssPart::kRetained) return {part, end};
  const MappingModel::Stretch call = mappings_.At(address);
  end = std::min(end, call.end);
  if (call.site == nullptr) return {part, end};
  switch (call.site->kind) {
    case Kind::kMmap:
    case Kind::kBrk: return {RssPart::kProgramMap, end};
    case Kind::kShm: return {RssPart::kShared, end};
    case Kind::kHeapGrowth:
    case Kind::kArenaGrowth:
    case Kind::kMappedBlock: return {RssPart::kRetained, end};
  }
  return {part, end};
}

}  // namespace memtrace::report
