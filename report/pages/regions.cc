#include "report/pages/regions.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "report/model/shared_memory.h"

namespace memtrace::report::pages {
namespace {

constexpr uint64_t kLargestGuard = 64 << 10;

bool Unnamed(const Mapping& m) { return m.inode == 0 && m.name.empty(); }

// "[vdso]", "[vvar]", "[vsyscall]", "[uprobes]": the kernel's own.
bool OfTheKernel(const Mapping& m) {
  return m.inode == 0 && absl::StartsWith(m.name, "[") && !absl::StartsWith(m.name, "[anon") &&
         !absl::StartsWith(m.name, "[stack") && m.name != "[heap]";
}

}  // namespace

std::vector<MappedRegion> Classify(std::vector<Mapping> mappings, const std::string& executable) {
  absl::flat_hash_set<std::string> units;
  for (const Mapping& m : mappings) {
    if (m.of_file() && m.executable && !m.shared) units.insert(m.name);
  }
  std::vector<MappedRegion> regions;
  regions.reserve(mappings.size());
  for (Mapping& m : mappings) {
    const MappedRegion* before = regions.empty() ? nullptr : &regions.back();
    const bool adjacent = before != nullptr && before->mapping.end == m.start;
    MappedRegion region;
    if (OfTheKernel(m)) {
      region.region = Region::kSpecial;
    } else if (m.name == "[heap]") {
      region.region = Region::kHeap;
    } else if (absl::StartsWith(m.name, "[stack")) {
      region.region = Region::kStack;
    } else if (m.shared) {
      region.region =
          m.of_file() && !IsSharedMemory(m.name) ? Region::kFile : Region::kShared;
    } else if (m.of_file() && units.contains(m.name)) {
      region.unit = m.name;
      region.owner = m.name == executable ? Owner::kProgram : Owner::kLibrary;
      region.region = m.executable ? Region::kText : m.writable ? Region::kData : Region::kReadOnly;
    } else if (m.of_file()) {
      region.region = Region::kFile;
    } else if (Unnamed(m) && m.writable && adjacent &&
               (before->region == Region::kData ||
                (before->region == Region::kReadOnly && !before->unit.empty()))) {
      region.region = Region::kBss;
      region.unit = before->unit;
      region.owner = before->owner;
    } else if (Unnamed(m) && m.writable && adjacent && Unnamed(before->mapping) &&
               !before->mapping.readable && !before->mapping.writable &&
               !before->mapping.executable && before->mapping.bytes() <= kLargestGuard) {
      region.region = Region::kThreadStack;
    }
    region.mapping = std::move(m);
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace memtrace::report::pages
