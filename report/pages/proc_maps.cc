#include "report/pages/proc_maps.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/whole_io.h"
#include "report/base/map_line.h"
#include "report/base/unique_fd.h"

namespace memtrace::report::pages {
namespace {

// Names the kernel writes are shorter than PATH_MAX four times over (every byte as \ooo).
constexpr size_t kLongestLine = 32 << 10;

std::string Unescaped(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    // The kernel escapes line ends only; a backslash of the name stays one.
    if (text.substr(i, 4) == "\\012") {
      out.push_back('\n');
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool ParseHead(absl::string_view text, Mapping* mapping) {
  MapLine line;
  if (!ParseMapLine({text.data(), text.size()}, &line)) return false;
  Mapping m;
  m.start = line.begin;
  m.end = line.end;
  m.SetPermissions(line.permissions);
  m.offset = line.offset;
  m.device = std::string(line.device);
  m.inode = line.inode;
  absl::string_view name(line.name.data(), line.name.size());
  m.deleted = m.inode != 0 && absl::ConsumeSuffix(&name, " (deleted)");
  m.name = Unescaped(name);
  *mapping = std::move(m);
  return true;
}

struct Figure {
  const char* name;
  uint64_t Mapping::* field;
};
constexpr Figure kFigures[] = {
    {"Rss:", &Mapping::rss},
    {"Pss:", &Mapping::pss},
    {"Shared_Clean:", &Mapping::shared_clean},
    {"Shared_Dirty:", &Mapping::shared_dirty},
    {"Private_Clean:", &Mapping::private_clean},
    {"Private_Dirty:", &Mapping::private_dirty},
    {"Anonymous:", &Mapping::anonymous},
    {"Swap:", &Mapping::swap},
    {"AnonHugePages:", &Mapping::huge},
    {"ShmemPmdMapped:", &Mapping::huge},
    {"FilePmdMapped:", &Mapping::huge},
    {"Shared_Hugetlb:", &Mapping::hugetlb},
    {"Private_Hugetlb:", &Mapping::hugetlb},
};

}  // namespace

void MapsParser::Line(absl::string_view line) {
  Mapping head;
  if (ParseHead(line, &head)) {
    if (any_) take_(std::move(mapping_));
    mapping_ = std::move(head);
    any_ = true;
    return;
  }
  if (!any_) return;
  const size_t colon = line.find(':');
  if (colon == line.npos) return;
  const absl::string_view name = line.substr(0, colon + 1);
  absl::string_view number = absl::StripAsciiWhitespace(line.substr(colon + 1));
  absl::ConsumeSuffix(&number, " kB");
  uint64_t kilobytes = 0;
  if (!absl::SimpleAtoi(number, &kilobytes)) return;
  for (const Figure& figure : kFigures) {
    if (name != figure.name) continue;
    mapping_.*figure.field += kilobytes * 1024;
    mapping_.measured = true;
  }
}

void MapsParser::Feed(absl::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    if (end == piece.npos) {
      if (rest_.size() < kLongestLine) rest_.append(piece.data(), piece.size());
      return;
    }
    if (rest_.empty()) {
      Line(piece.substr(0, end));
    } else {
      rest_.append(piece.data(), end);
      Line(rest_);
      rest_.clear();
    }
    piece.remove_prefix(end + 1);
  }
}

void MapsParser::Finish() {
  if (!rest_.empty()) Line(std::exchange(rest_, {}));
  if (any_) take_(std::move(mapping_));
  any_ = false;
}

absl::Status ReadMaps(const std::string& file, std::vector<Mapping>* mappings) {
  const auto failed = [&file](int error) {
    return absl::Status(
        error == ESRCH ? absl::StatusCode::kNotFound : absl::ErrnoToStatusCode(error),
        absl::StrCat(file, ": ", strerror(error)));
  };
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return failed(errno);
  MapsParser parser([mappings](Mapping&& mapping) { mappings->push_back(std::move(mapping)); });
  const bool read = base::ReadParts(fd.get(), [&](std::string_view part) {
    parser.Feed({part.data(), part.size()});
    return true;
  });
  if (!read) return failed(errno);
  parser.Finish();
  return absl::OkStatus();
}

}  // namespace memtrace::report::pages
