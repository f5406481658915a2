// Symbolic links inside a sysroot. See sysroot.h.

#include "symbolizer/sysroot.h"

#include <unistd.h>

#include <climits>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace memtrace::symbolizer {
namespace {

constexpr int kMaxLinks = 40;  // what Linux allows on one path

void PushFront(std::deque<std::string>* rest, std::string_view path) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty());
  rest->insert(rest->begin(), parts.begin(), parts.end());
}

}  // namespace

std::string ResolveInSysroot(const std::string& sysroot, std::string_view path) {
  if (sysroot.empty()) return std::string(path);
  std::string root = sysroot;
  while (!root.empty() && root.back() == '/') root.pop_back();

  std::deque<std::string> rest;
  PushFront(&rest, path);
  std::vector<std::string> done;
  int links = 0;
  while (!rest.empty()) {
    const std::string part = rest.front();
    rest.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    char target[PATH_MAX];
    const std::string here = absl::StrCat(root, "/", absl::StrJoin(done, "/"));
    const ssize_t length = readlink(here.c_str(), target, sizeof target);
    if (length <= 0 || ++links > kMaxLinks) continue;  // not a link, or a loop
    const std::string_view link(target, static_cast<size_t>(length));
    done.pop_back();
    if (link.front() == '/') done.clear();
    PushFront(&rest, link);
  }
  return absl::StrCat(root, "/", absl::StrJoin(done, "/"));
}

}  // namespace memtrace::symbolizer
