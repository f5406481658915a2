#include "report/render/stack_numbers.h"

#include "absl/strings/str_cat.h"
#include "report/names/frames_filter.h"
#include "report/render/json_parts.h"

namespace memtrace::report::render {
namespace {

constexpr uint32_t kInlined = 8;

// One column of a table: "name":[...]
template <typename Rows, typename Value>
void WriteColumn(absl::string_view name, bool first, const Rows& rows, Value value,
                 words::Sink& out) {
  std::string text = absl::StrCat(first ? "" : ",", "\"", name, "\":[");
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", value(rows[i]));
    if (text.size() > 1 << 16) {
      out.Write(text);
      text.clear();
    }
  }
  out.Write(absl::StrCat(text, "]"));
}

// Numbers for strings, in the order of their first use.
class Strings {
 public:
  uint32_t Of(absl::string_view text) {
    const auto [it, is_new] = numbers_.try_emplace(text, list_.size());
    if (is_new) list_.emplace_back(text);
    return it->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  absl::flat_hash_map<std::string, uint32_t> numbers_{{"", 0}};
  std::vector<std::string> list_{""};
};

}  // namespace

uint32_t StackNumbers::FrameNumber(const Frame& frame) {
  const auto [it, is_new] = by_identity_.try_emplace(frame.identity, frames_.size());
  if (is_new) frames_.push_back(&frame);
  return it->second;
}

uint32_t StackNumbers::Of(StackId stack) {
  const std::vector<const Frame*> frames = view_->Frames(stack);
  uint32_t node = 0;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto [it, is_new] = tree_.try_emplace({node, FrameNumber(**frame)}, nodes_.size());
    if (is_new) nodes_.push_back(it->first);
    node = it->second;
  }
  const auto [it, is_new] = by_leaf_.try_emplace(node, stacks_.size());
  if (is_new) {
    const names::Cut cut = frames.empty() ? names::Cut{} : names::CutStack(frames);
    stacks_.push_back({node, static_cast<uint32_t>(cut.begin), static_cast<uint32_t>(cut.end),
                       static_cast<uint32_t>(cut.caller)});
  }
  return it->second;
}

void StackNumbers::WriteTables(words::Sink& out) const {
  Strings strings;
  struct Named {
    uint32_t name, module, file;
  };
  std::vector<Named> names;
  for (const Frame* frame : frames_) {
    names.push_back(
        {strings.Of(FrameName(*frame)), strings.Of(frame->module), strings.Of(frame->file)});
  }
  out.Write(",\n\"strings\":[");
  for (size_t i = 0; i < strings.list().size(); ++i) {
    out.Write(absl::StrCat(i == 0 ? "" : ",", Dump(strings.list()[i])));
  }
  out.Write("],\n\"frames\":{");
  WriteColumn("name", true, names, [](const Named& one) { return one.name; }, out);
  WriteColumn("module", false, names, [](const Named& one) { return one.module; }, out);
  WriteColumn("file", false, names, [](const Named& one) { return one.file; }, out);
  WriteColumn("line", false, frames_, [](const Frame* one) { return one->line; }, out);
  WriteColumn("flags", false, frames_, [](const Frame* one) {
    return static_cast<uint32_t>(one->role) | (one->inlined ? kInlined : 0);
  }, out);
  out.Write("},\n\"nodes\":{");
  WriteColumn("parent", true, nodes_, [](const auto& node) { return node.first; }, out);
  WriteColumn("frame", false, nodes_, [](const auto& node) { return node.second; }, out);
  out.Write("},\n\"stacks\":{");
  WriteColumn("node", true, stacks_, [](const StackEntry& one) { return one.node; }, out);
  WriteColumn("begin", false, stacks_, [](const StackEntry& one) { return one.begin; }, out);
  WriteColumn("end", false, stacks_, [](const StackEntry& one) { return one.end; }, out);
  WriteColumn("caller", false, stacks_, [](const StackEntry& one) { return one.caller; }, out);
  out.Write("}");
}

}  // namespace memtrace::report::render
