// MappingModel: the memory that the program, or libc's allocator for it, holds
// from the kernel: which ranges, by which call.
//
// A map of disjoint ranges. A new mapping replaces what it covers, as MAP_FIXED
// does in truth; an unmapping cuts ranges where it must; mremap moves one with
// its owner. An unmapping that failed is taken back. One that was the first half of an mremap is
// kept for the second, and what others mapped there meanwhile stays.
//
// Takes events in the order of EventOrder, without waiting: mappings are rare.
// Single-threaded.

#ifndef MEMTRACE_REPORT_MODEL_MAPPING_MODEL_H_
#define MEMTRACE_REPORT_MODEL_MAPPING_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/base/strong_id.h"
#include "report/findings/site.h"

namespace memtrace::report {

struct Analysis;

class MappingModel {
 public:
  using Kind = MappingSite::Kind;

  struct Call {
    Kind kind;
    StackId stack;
    std::string_view file;
    bool counted;  // within the range and of the thread asked for
    bool anonymous = false;
  };

  void Map(uint64_t address, uint64_t length, const Call& call);
  // Returns nothing, but remembers what it took for UnmapFailed() or Remap() of the same stream.
  void Unmap(size_t stream, uint64_t address, uint64_t length);
  void UnmapFailed(size_t stream, uint64_t address);
  struct Move {
    uint64_t old_address, old_length, new_address, new_length;
    bool keeps_old = false;     // MREMAP_DONTUNMAP
    bool was_unmapped = false;  // the old range, by the latest Unmap() of the same stream
  };
  void Remap(size_t stream, const Move& move, const Call& call);
  // The break moved: up, the bytes belong to the call; down, they are given back.
  void Break(uint64_t old_break, uint64_t new_break, const Call& call);
  // A heap of another arena has now this many bytes.
  void Arena(uint64_t base, uint64_t bytes, const Call& call);
  void Detach(size_t stream, uint64_t address);  // shmdt; as Unmap()

  // The site that mapped the range with `address`; nullptr: none did, or it is
  // not of the selection.
  const MappingSite* Find(uint64_t address) const;
  // What Find() says, and up to where: from `address` on until the answer changes.
  struct Stretch {
    const MappingSite* site;
    uint64_t end;
  };
  Stretch At(uint64_t address) const;

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);
  // Forgets all sites but keeps the ranges, which then are nobody's. See
  // HeapModel::ForgetFigures().
  void ForgetFigures();

  // Appends the sites to `analysis` and adds up what the memory map is explained with.
  // `map_at_end`: the text of the memory map, empty where there is none.
  void Finish(std::string_view map_at_end, Analysis* analysis) const;

 private:
  struct Range {
    uint64_t end;
    uint32_t site;  // index in sites_; UINT32_MAX: none, its call is not of the selection
    bool anonymous;
    Kind kind;
  };
  using Ranges = std::map<uint64_t, Range>;  // by begin

  uint32_t SiteOf(const Call& call);
  void Insert(uint64_t begin, const Range& range);
  // Takes [begin, end) out of the map; `taken` receives the pieces.
  void Erase(uint64_t begin, uint64_t end, std::vector<std::pair<uint64_t, Range>>* taken);

  Ranges ranges_;
  std::vector<MappingSite> sites_;
  absl::flat_hash_map<std::pair<uint64_t, std::string>, uint32_t> site_index_;
  absl::flat_hash_map<size_t, std::vector<std::pair<uint64_t, Range>>> last_unmapped_;
  uint64_t break_growth_ = 0;  // all the break moved, seen; wraps below 0
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_MAPPING_MODEL_H_
