#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

void Figures::Add(const Mapping& m) {
  virtual_bytes += m.bytes();
  rss += m.rss;
  pss += m.pss;
  private_clean += m.private_clean;
  private_dirty += m.private_dirty;
  shared_clean += m.shared_clean;
  shared_dirty += m.shared_dirty;
  anonymous += m.anonymous;
  swap += m.swap;
  huge += m.huge;
  hugetlb += m.hugetlb;
  ++mappings;
}

void Figures::Add(const Figures& other) {
  virtual_bytes += other.virtual_bytes;
  rss += other.rss;
  pss += other.pss;
  private_clean += other.private_clean;
  private_dirty += other.private_dirty;
  shared_clean += other.shared_clean;
  shared_dirty += other.shared_dirty;
  anonymous += other.anonymous;
  swap += other.swap;
  huge += other.huge;
  hugetlb += other.hugetlb;
  mappings += other.mappings;
}

Figures ProcessPages::Total() const {
  Figures total;
  for (const MappedRegion& region : mappings) total.Add(region.mapping);
  return total;
}

const char* RegionName(Region region) {
  switch (region) {
    case Region::kText: return "text";
    case Region::kReadOnly: return "read-only";
    case Region::kData: return "data";
    case Region::kBss: return "bss";
    case Region::kHeap: return "heap";
    case Region::kStack: return "stack";
    case Region::kThreadStack: return "thread-stack";
    case Region::kAnonymous: return "anonymous";
    case Region::kShared: return "shared";
    case Region::kFile: return "file";
    case Region::kSpecial: return "special";
  }
  return "";
}

const char* OwnerName(Owner owner) {
  switch (owner) {
    case Owner::kProgram: return "program";
    case Owner::kLibrary: return "libraries";
    case Owner::kNone: break;
  }
  return "";
}

}  // namespace memtrace::report::pages
