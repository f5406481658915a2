#include "report/pressure/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/whole_io.h"
#include "report/base/unique_fd.h"

namespace memtrace::report::pressure {
namespace {

absl::Status Error(int error) {
  return absl::Status(absl::ErrnoToStatusCode(error), strerror(error));
}

}  // namespace

absl::StatusOr<std::string> KernelFiles::Read(absl::string_view path) const {
  const UniqueFd fd(open(absl::StrCat(root_, path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) return Error(errno);
  std::string text;
  const bool read = base::ReadParts(fd.get(), [&](std::string_view part) {
    text += part;
    return text.size() < kLongest;
  });
  if (!read) return Error(errno);
  return text;
}

bool KernelFiles::Exists(absl::string_view path) const {
  return access(absl::StrCat(root_, path).c_str(), F_OK) == 0;
}

std::vector<std::string> KernelFiles::List(absl::string_view directory) const {
  std::vector<std::string> names;
  DIR* const opened = opendir(absl::StrCat(root_, directory).c_str());
  if (opened == nullptr) return names;
  while (const dirent* entry = readdir(opened)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(opened);
  return names;
}

std::vector<uint32_t> KernelFiles::Pids() const {
  std::vector<uint32_t> pids;
  for (const std::string& name : List("/proc")) {
    uint32_t pid = 0;
    if (absl::SimpleAtoi(name, &pid)) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string ProcPath(uint32_t pid, absl::string_view file) {
  return absl::StrCat("/proc/", pid, "/", file);
}

std::optional<uint64_t> NumberAfter(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    if (line.empty() || !absl::ascii_isspace(static_cast<unsigned char>(line[0]))) continue;
    line = absl::StripAsciiWhitespace(line);
    const bool kilobytes = absl::ConsumeSuffix(&line, " kB");
    uint64_t number = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &number)) return std::nullopt;
    return kilobytes ? number * 1024 : number;
  }
  return std::nullopt;
}

std::optional<uint64_t> OnlyNumber(absl::string_view text) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number)) return std::nullopt;
  return number;
}

std::optional<uint64_t> StallTotal(absl::string_view text, absl::string_view kind) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, kind)) continue;
    const size_t at = line.find("total=");
    return at == absl::string_view::npos ? std::nullopt : OnlyNumber(line.substr(at + 6));
  }
  return std::nullopt;
}

}  // namespace memtrace::report::pressure
