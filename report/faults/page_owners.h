// PageOwners: whose the memory of a snapshot is, apart from the blocks of the heap that lie in it.
//
// Each address is in one RssPart: by who mapped it (the library, the program by a call that is
// known, the allocator), else by what the mapping is. A mapping of /proc/self/smaps may be of
// several, for the kernel merges neighbours that look the same.

#ifndef MEMTRACE_REPORT_FAULTS_PAGE_OWNERS_H_
#define MEMTRACE_REPORT_FAULTS_PAGE_OWNERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "report/faults/address_space.h"
#include "report/faults/snapshot_reader.h"
#include "report/findings/rss_bridge.h"
#include "report/model/mapping_model.h"

namespace memtrace::report {

class PageOwners {
 public:
  // All of them have to outlive this. Then calls of Begin(), by address.
  PageOwners(const RawSnapshot& snapshot, const AddressSpace& space,
             const MappingModel& mappings);

  // From here on questions are about this mapping. `has_blocks`: it has blocks of the heap.
  void Begin(const SnapshotMapping& mapping, bool has_blocks);

  // The part that the mapping is as a whole, and that its memory is where nothing more is known.
  RssPart whole() const { return whole_; }

  // The part that the memory is from `address`, in the mapping, up to where the answer changes.
  // Addresses may go down again within the mapping.
  struct Stretch {
    RssPart part;
    uint64_t end;
  };
  Stretch At(uint64_t address) const;

 private:
  RssPart PartOf(const AddressSpace::Region* region, const SnapshotMapping& mapping) const;

  const std::vector<std::pair<uint64_t, uint64_t>>& own_;  // by begin
  const MappingModel& mappings_;
  const std::vector<AddressSpace::Region> regions_;        // by begin
  const SnapshotMapping* mapping_ = nullptr;
  RssPart whole_ = RssPart::kOther;
  bool anonymous_ = false;  // private memory of no file: what is in it may be anybody's
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_PAGE_OWNERS_H_
