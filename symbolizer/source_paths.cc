// SourcePaths. See source_paths.h.

#include "symbolizer/source_paths.h"

#include <dwarf.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace memtrace::symbolizer {

std::string CleanPath(std::string_view path) {
  if (path.find("//") == std::string_view::npos && path.find("/.") == std::string_view::npos) {
    return std::string(path);
  }
  const bool absolute = path.starts_with("/");
  std::vector<absl::string_view> kept;
  for (absl::string_view text :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty())) {
    if (text == "." && (absolute || !kept.empty())) continue;
    if (text == "..") {
      if (!kept.empty() && kept.back() != ".." && kept.back() != ".") {
        kept.pop_back();
        continue;
      }
      if (kept.empty() && absolute) continue;
    }
    kept.push_back(text);
  }
  return absl::StrCat(absolute ? "/" : "", absl::StrJoin(kept, "/"));
}

SourcePaths::SourcePaths(Dwarf_Die* unit) {
  Dwarf_Attribute attribute;
  const char* directory = nullptr;
  if (dwarf_attr(unit, DW_AT_comp_dir, &attribute) != nullptr) {
    directory = dwarf_formstring(&attribute);
  }
  if (directory != nullptr) directory_ = directory;
  while (!directory_.empty() && directory_.back() == '/') directory_.pop_back();
}

const std::string& SourcePaths::Of(const char* name) {
  const auto [it, inserted] = paths_.try_emplace(name);
  if (inserted) {
    const std::string_view text = name;
    const bool complete = text.starts_with("/") || directory_.empty() ||
                          (text.starts_with(directory_) && text.size() > directory_.size() &&
                           text[directory_.size()] == '/');
    it->second = CleanPath(complete ? std::string(text) : absl::StrCat(directory_, "/", name));
  }
  return it->second;
}

}  // namespace memtrace::symbolizer
