#include "report/leak/unseen_code.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"

namespace memtrace::report::leak {
namespace {

constexpr size_t kMostNamed = 3;

std::string Enumerate(const std::set<std::string>& names) {
  std::string text;
  size_t left = names.size();
  for (const std::string& name : names) {
    if (names.size() - left == kMostNamed) break;
    --left;
    absl::StrAppend(&text, text.empty() ? "" : left == 0 ? " and " : ", ", name);
  }
  return left == 0 ? text : absl::StrCat(text, " and ", left, " more");
}

// The trace has those modules that stacks passed through, the scan those that have data.
std::string NameOf(const ScanHintRange& code, const Scan& scan, const TraceMetadata& metadata) {
  for (const ScanRegion& region : scan.regions) {
    if (region.start >= code.start && region.end <= code.end && !region.path.empty()) {
      return std::string(FileNameOf(region.path));
    }
  }
  for (const ModuleRecord& module : metadata.modules) {
    if (module.info.start < code.end && module.info.end > code.start) {
      return std::string(FileNameOf(module.info.path));
    }
  }
  return "a library";
}

}  // namespace

UnseenCode::UnseenCode(const Scan& scan, const TraceMetadata& metadata) {
  std::set<std::string> allocate, free;
  for (const ScanHintRange& hint : scan.hints) {
    const bool allocates = hint.kind == format::ScanHint::kAllocatesUnseen;
    if (!allocates && hint.kind != format::ScanHint::kFreesUnseen) continue;
    (allocates ? allocate : free).insert(NameOf(hint, scan, metadata));
    if (!allocates) frees_.push_back({hint.start, hint.end, 0});
  }
  for (const std::string& note : metadata.NotesThatHold()) {
    const absl::string_view name = FileNameOf(DeepboundFile(note));
    if (name.empty()) continue;
    allocate.emplace(name);
    free.emplace(name);
    for (const ModuleRecord& module : metadata.modules) {
      // What was there before the program began was not opened, though it may have the same name.
      const bool permanent = (module.info.flags & format::kModulePermanent) != 0;
      if (permanent || FileNameOf(module.info.path) != name) continue;
      frees_.push_back({module.info.start, module.info.end, module.info.id.value});
    }
  }
  who_allocates_ = Enumerate(allocate);
  who_frees_ = Enumerate(free);
}

std::vector<bool> UnseenCode::MayHaveFreed(const std::vector<BlockSite>& sites,
                                           const StackTable& stacks) const {
  std::vector<bool> may;
  if (frees_.empty()) return may;
  const auto is_there = [this](const StackNode& node) {
    return std::any_of(frees_.begin(), frees_.end(), [&node](const Code& code) {
      return node.pc >= code.start && node.pc < code.end &&
             (code.instance == 0 || node.instance == code.instance);
    });
  };
  may.resize(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) {
    for (StackId id = sites[i].stack; id && !may[i]; id = stacks.node(id).parent) {
      const StackNode& node = stacks.node(id);
      may[i] = !node.is_marker() && is_there(node);
    }
  }
  return may;
}

}  // namespace memtrace::report::leak
