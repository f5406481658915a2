#include "report/pages/page_sums.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "report/words/units.h"

namespace memtrace::report::pages {
namespace {

// The regions of a unit come first in the enum.
constexpr size_t kUnitRegions = 4;

}  // namespace

std::vector<RegionRow> RegionRows(const ProcessPages& process) {
  std::map<std::pair<Owner, Region>, Figures> sums;
  for (const MappedRegion& region : process.mappings) {
    sums[{region.owner, region.region}].Add(region.mapping);
  }
  std::vector<RegionRow> rows;
  for (const Owner owner : {Owner::kProgram, Owner::kLibrary, Owner::kNone}) {
    for (const auto& [key, figures] : sums) {
      if (key.first == owner) rows.push_back({key.second, owner, figures});
    }
  }
  return rows;
}

std::vector<Unit> Units(const PagesSnapshot& snapshot) {
  using Key = std::tuple<std::string, std::string, uint64_t>;
  std::map<Key, Unit> units;
  std::map<Key, absl::flat_hash_set<uint64_t>> frames;
  for (const ProcessPages& process : snapshot.processes) {
    Key of_unit;  // a .bss has no file of its own: it follows its unit's data
    for (const MappedRegion& region : process.mappings) {
      if (region.unit.empty()) continue;
      if (region.mapping.of_file()) {
        of_unit = {region.unit, region.mapping.device, region.mapping.inode};
      }
      Unit& unit = units[of_unit];
      std::tie(unit.name, unit.device, unit.inode) = of_unit;
      unit.deleted |= region.mapping.deleted;
      if (unit.pids.empty() || unit.pids.back() != process.pid) unit.pids.push_back(process.pid);
      unit.figures.Add(region.mapping);
      const size_t index = static_cast<size_t>(region.region);
      if (index < kUnitRegions) unit.by_region[index].Add(region.mapping);
      if (region.region == Region::kText) {
        unit.text_copies += region.mapping.anonymous / snapshot.page_bytes;
      }
      for (const Page& page : region.pages) {
        if (page.frame != 0 && !page.is(Page::kZero)) frames[of_unit].insert(page.frame);
      }
    }
  }
  std::vector<Unit> sorted;
  for (auto& [key, unit] : units) {
    const auto known = frames.find(key);
    if (known != frames.end()) unit.physical_pages = known->second.size();
    sorted.push_back(std::move(unit));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Unit& a, const Unit& b) { return a.figures.pss > b.figures.pss; });
  return sorted;
}

UserPages CountUserPages(const PagesSnapshot& snapshot) {
  UserPages total;
  absl::flat_hash_set<uint64_t> frames;
  uint64_t shares = 0;
  for (const ProcessPages& process : snapshot.processes) {
    for (const MappedRegion& region : process.mappings) {
      if (region.region == Region::kSpecial) continue;  // the kernel's own
      shares += region.mapping.pss + region.mapping.hugetlb;
      for (const Page& page : region.pages) {
        if (page.frame != 0 && !page.is(Page::kZero)) frames.insert(page.frame);
      }
    }
  }
  total.by_frames = snapshot.counted;
  total.pages = snapshot.counted ? frames.size()
                                 : (shares + snapshot.page_bytes / 2) / snapshot.page_bytes;
  return total;
}

const char* AlertName(Alert::Kind kind) {
  switch (kind) {
    case Alert::Kind::kTextCopies: return "text-copies";
    case Alert::Kind::kEqualCopies: return "equal-copies";
    case Alert::Kind::kUnchanged: return "unchanged-copies";
  }
  return "";
}

std::string AlertSentence(const Alert& alert, uint64_t page_bytes) {
  const std::string pages = words::Plural(alert.pages, "page");
  const std::string in = absl::StrCat(" in ", alert.pids.size(),
                                      alert.pids.size() == 1 ? " process" : " processes");
  switch (alert.kind) {
    case Alert::Kind::kTextCopies:
      return absl::StrCat(pages, " of text are private copies", in,
                          ": relocated (built without -fPIC?), patched, or with breakpoints");
    case Alert::Kind::kEqualCopies:
      return absl::StrCat(pages, " of ", RegionName(alert.region), " are private copies", in,
                          " with the same content: ", alert.could_be, " would do (",
                          words::HumanBytes((alert.pages - alert.could_be) * page_bytes), " less)");
    case Alert::Kind::kUnchanged:
      return absl::StrCat(pages, " of ", RegionName(alert.region), " are private copies", in,
                          " of what the file holds anyway: written to without a change");
  }
  return "";
}

std::vector<Alert> TextAlerts(const std::vector<Unit>& units, const PagesSnapshot& snapshot) {
  std::vector<Alert> alerts;
  for (const Unit& unit : units) {
    if (unit.text_copies == 0) continue;
    Alert alert;
    alert.unit = unit.name;
    alert.pages = unit.text_copies;
    for (const ProcessPages& process : snapshot.processes) {
      const bool has = std::any_of(
          process.mappings.begin(), process.mappings.end(), [&](const MappedRegion& region) {
            return region.unit == unit.name && region.region == Region::kText &&
                   region.mapping.inode == unit.inode && region.mapping.anonymous != 0;
          });
      if (has) alert.pids.push_back(process.pid);
    }
    alerts.push_back(std::move(alert));
  }
  return alerts;
}

}  // namespace memtrace::report::pages
