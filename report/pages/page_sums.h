// Sums over what was collected: by region of each process, by executable unit over all of
// them, and all user pages as one number; and what looks wrong.

#ifndef MEMTRACE_REPORT_PAGES_PAGE_SUMS_H_
#define MEMTRACE_REPORT_PAGES_PAGE_SUMS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

// A row of a process's table: what it is for, and whose.
struct RegionRow {
  Region region;
  Owner owner;
  Figures figures;
};
// Program's text, read-only, data, bss; those of libraries; heap, stacks and so on. Only those
// that the process has.
std::vector<RegionRow> RegionRows(const ProcessPages& process);

// An executable unit, over all processes: by device, inode and name.
struct Unit {
  std::string name, device;
  uint64_t inode = 0;
  bool deleted = false;
  std::vector<uint32_t> pids;
  Figures figures;                          // summed over the processes
  std::array<Figures, 4> by_region;         // text, read-only, data, bss
  uint64_t physical_pages = 0;              // different ones, where frames are known; else 0
  uint64_t text_copies = 0;                 // private pages in its text, over all processes
};
std::vector<Unit> Units(const PagesSnapshot& snapshot);  // most resident share first

struct UserPages {
  uint64_t pages = 0;
  bool by_frames = false;  // different physical pages; else the sum of proportional shares
};
UserPages CountUserPages(const PagesSnapshot& snapshot);

// Pages that could be shared and are not.
struct Alert {
  enum class Kind {
    kTextCopies,   // text with private pages: relocated, patched or written by a debugger
    kEqualCopies,  // private copies with the same content in several processes
    kUnchanged,    // a private copy with the content of the file
  };
  Kind kind = Kind::kTextCopies;
  std::string unit;
  Region region = Region::kText;
  uint64_t pages = 0;        // private copies, in all processes
  uint64_t could_be = 0;     // so many would do; of kTextCopies 0
  std::vector<uint32_t> pids;
};
const char* AlertName(Alert::Kind kind);
std::string AlertSentence(const Alert& alert, uint64_t page_bytes);

std::vector<Alert> TextAlerts(const std::vector<Unit>& units, const PagesSnapshot& snapshot);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PAGE_SUMS_H_
