// What `memtrace pages` knows of processes: their mappings, what each is for, and each
// page of them that is resident or swapped out.

#ifndef MEMTRACE_REPORT_PAGES_PROCESS_PAGES_H_
#define MEMTRACE_REPORT_PAGES_PROCESS_PAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/base/page.h"
#include "report/pages/proc_maps.h"

namespace memtrace::report::pages {

// The purpose of a mapping. Text, read-only data, data and bss are of an executable unit: a
// file of which the process has a part mapped executable.
enum class Region : uint8_t {
  kText, kReadOnly, kData, kBss, kHeap, kStack, kThreadStack, kAnonymous, kShared, kFile, kSpecial,
};
inline constexpr size_t kRegions = 11;
// Whether an executable unit is the program itself or a library. Other mappings have kNone.
enum class Owner : uint8_t { kNone, kProgram, kLibrary };

struct Page {
  enum Bits : uint8_t {
    kPresent = 1, kSwapped = 2,
    kOfFile = 4,     // or of shared memory; else anonymous
    kExclusive = 8,  // mapped once, says pagemap
    kHuge = 16,      // mapped as a part of a huge page
    kZero = 32,      // the kernel's page of zeros
    kCounted = 64,   // `mapped` is by kpagecount
  };
  uint64_t address = 0;
  uint64_t frame = 0;   // physical; 0 hidden
  uint32_t mapped = 0;  // so many times, over all processes
  uint8_t bits = 0;

  bool is(Bits bit) const { return (bits & bit) != 0; }
};

struct Figures {
  uint64_t virtual_bytes = 0, rss = 0, pss = 0, private_clean = 0, private_dirty = 0,
           shared_clean = 0, shared_dirty = 0, anonymous = 0, swap = 0, huge = 0, hugetlb = 0;
  uint64_t mappings = 0;

  void Add(const Mapping& mapping);
  void Add(const Figures& other);
  uint64_t shared_bytes() const { return shared_clean + shared_dirty; }
};

struct MappedRegion {
  Mapping mapping;
  Region region = Region::kAnonymous;
  Owner owner = Owner::kNone;
  std::string unit;         // the file; of a .bss that of its data
  std::vector<Page> pages;  // by address: those that are present or swapped out
  bool pages_known = false; // pagemap was read, to its end or to all that smaps counts
};

struct ProcessPages {
  uint32_t pid = 0;
  std::string name;     // of /proc/PID/comm
  std::string command;  // of cmdline, words joined by blanks
  std::string executable;
  std::vector<MappedRegion> mappings;  // by address
  std::string problem;  // why a part of this is not known; empty: all is

  Figures Total() const;
};

struct Skipped {
  uint32_t pid = 0;
  std::string name;
  std::string why;
};

struct PagesSnapshot {
  uint64_t page_bytes = kPageBytes;
  bool counted = false;       // by kpagecount; else shared pages are known by smaps alone
  std::string not_counted_because;
  std::string source;         // "of 4711", "of all processes"
  int64_t realtime_ns = 0;
  std::vector<ProcessPages> processes;  // by pid
  std::vector<Skipped> skipped;
  uint64_t kernel_threads = 0;
};

// "text", "read-only", ... in tables, and in machine-readable output.
const char* RegionName(Region region);
const char* OwnerName(Owner owner);  // "program", "libraries", ""

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PROCESS_PAGES_H_
