#include "report/pages/page_copies.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "report/base/unique_fd.h"

namespace memtrace::report::pages {
namespace {

struct Place {  // of a page in a file
  std::string device;
  uint64_t inode = 0;
  std::string unit;
  Region region = Region::kText;
  uint64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

struct Copy {
  uint32_t pid = 0;
  uint64_t hash = 0;
  bool unchanged = false;
};

std::optional<uint64_t> HashAt(int fd, uint64_t at, uint64_t bytes) {
  std::vector<uint8_t> page(bytes);
  const ssize_t n = pread(fd, page.data(), bytes, static_cast<off_t>(at));
  // The end of a file is zeros in its last page.
  if (n <= 0) return std::nullopt;
  return format::Checksum(page.data(), bytes);
}

// Whether the page is a copy of the process's own. A page that processes share since a fork
// is one page, no copy.
bool IsOwnCopy(const Page& page) {
  if (page.is(Page::kOfFile) || page.is(Page::kZero) || !page.is(Page::kPresent)) return false;
  return page.is(Page::kCounted) ? page.mapped == 1 : page.is(Page::kExclusive);
}

// The mapped file, if it is still under its name.
UniqueFd OpenFile(uint32_t pid, const Mapping& m) {
  UniqueFd fd(open(absl::StrCat("/proc/", pid, "/root", m.name).c_str(),
                   O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (fd.ok() &&
      (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_ino != m.inode)) {
    fd.Close();
  }
  return fd;
}

}  // namespace

Copies CompareCopies(const PagesSnapshot& snapshot) {
  Copies result;
  std::map<Place, std::vector<Copy>> copies;
  for (const ProcessPages& process : snapshot.processes) {
    const UniqueFd memory(
        open(absl::StrCat("/proc/", process.pid, "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    if (!memory.ok()) {
      result.not_compared = absl::StrCat("/proc/", process.pid, "/mem: ", strerror(errno));
      continue;
    }
    for (const MappedRegion& region : process.mappings) {
      const Mapping& m = region.mapping;
      if (region.unit.empty() || !m.of_file() || m.anonymous == 0) continue;
      const UniqueFd file = OpenFile(process.pid, m);
      for (const Page& page : region.pages) {
        if (!IsOwnCopy(page)) continue;
        if (result.compared == Copies::kMostPages) {
          result.all = false;
          break;
        }
        const auto hash = HashAt(memory.get(), page.address, snapshot.page_bytes);
        if (!hash.has_value()) continue;  // it ended
        ++result.compared;
        const uint64_t offset = m.offset + (page.address - m.start);
        const auto of_file =
            file.ok() ? HashAt(file.get(), offset, snapshot.page_bytes) : std::nullopt;
        copies[{m.device, m.inode, region.unit, region.region, offset}].push_back(
            {process.pid, *hash, of_file == hash});
      }
    }
  }

  // By unit and region: a page counts as equal where all who have a copy have the same.
  struct Sum {
    uint64_t pages = 0, could_be = 0;
    std::set<uint32_t> pids;
  };
  std::map<std::tuple<std::string, Region, Alert::Kind>, Sum> sums;
  for (const auto& [place, copies_there] : copies) {
    // Clang 14's lambdas see no structured binding.
    const std::vector<Copy>& of_page = copies_there;
    for (const Copy& copy : of_page) {
      if (!copy.unchanged) continue;
      Sum& sum = sums[{place.unit, place.region, Alert::Kind::kUnchanged}];
      ++sum.pages;
      sum.pids.insert(copy.pid);
    }
    const bool equal = of_page.size() > 1 && !of_page[0].unchanged &&
                       std::all_of(of_page.begin(), of_page.end(), [&](const Copy& copy) {
                         return copy.hash == of_page[0].hash;
                       });
    if (!equal) continue;
    Sum& sum = sums[{place.unit, place.region, Alert::Kind::kEqualCopies}];
    sum.pages += of_page.size();
    ++sum.could_be;
    for (const Copy& copy : of_page) sum.pids.insert(copy.pid);
  }
  for (const auto& [key, sum] : sums) {
    Alert alert;
    std::tie(alert.unit, alert.region, alert.kind) = key;
    alert.pages = sum.pages;
    alert.could_be = sum.could_be;
    alert.pids.assign(sum.pids.begin(), sum.pids.end());
    result.alerts.push_back(std::move(alert));
  }
  std::stable_sort(result.alerts.begin(), result.alerts.end(), [](const Alert& a, const Alert& b) {
    return a.pages - a.could_be > b.pages - b.could_be;
  });
  return result;
}

}  // namespace memtrace::report::pages
