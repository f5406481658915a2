// --format speedscope: a profile of speedscope's own file format for each measure.
//
// A frame is a function of a file: two lines of one function are one box, as readers of flame
// graphs expect.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/render/json_parts.h"
#include "report/viewers/viewers.h"

namespace memtrace::report::viewers {
namespace {

using render::Json;

class FrameTable {
 public:
  size_t IdOf(const Frame& frame) {
    return IdOf(render::FrameName(frame), frame.file.empty() ? frame.module : frame.file);
  }
  size_t IdOf(std::string name, std::string file) {
    const auto [at, is_new] = ids_.try_emplace({std::move(name), std::move(file)}, rows_.size());
    if (is_new) rows_.push_back(&at->first);
    return at->second;
  }
  const std::vector<const std::pair<std::string, std::string>*>& rows() const { return rows_; }

 private:
  // Nodes, so that the rows may point into it.
  std::map<std::pair<std::string, std::string>, size_t> ids_;
  std::vector<const std::pair<std::string, std::string>*> rows_;
};

struct Stack {
  const Site* site;
  std::vector<size_t> frames;  // outermost first
};

void WriteProfile(const ReportView& view, const std::vector<Stack>& stacks, SiteMeasure measure,
                  Sink& out) {
  uint64_t total = 0;
  std::vector<const Stack*> shown;
  for (const Stack& stack : stacks) {
    const uint64_t value = ValueOf(view, *stack.site, measure);
    if (value == 0) continue;
    total += value;
    shown.push_back(&stack);
  }
  out.Write(absl::StrCat("{\"type\": \"sampled\", \"name\": \"", SiteMeasureName(measure),
                         "\", \"unit\": \"", IsBytes(measure) ? "bytes" : "none",
                         "\", \"startValue\": 0, \"endValue\": ", total, ", \"samples\": "));
  render::WriteArray(shown, shown.size(), [](const Stack* stack) { return Json(stack->frames); },
                     out);
  out.Write(", \"weights\": ");
  render::WriteArray(shown, shown.size(),
                     [&](const Stack* stack) { return Json(ValueOf(view, *stack->site, measure)); },
                     out);
  out.Write("}");
}

}  // namespace

void RenderSpeedscope(const ReportView& view, SiteMeasure measure, Sink& out) {
  FrameTable frames;
  std::vector<Stack> stacks;
  for (const Site* site : view.sites()) {
    Stack stack{site, {}};
    for (const Frame* frame : view.Frames(site->stack)) stack.frames.push_back(frames.IdOf(*frame));
    if (stack.frames.empty()) stack.frames.push_back(frames.IdOf("[no stack]", ""));
    std::reverse(stack.frames.begin(), stack.frames.end());
    stack.frames.push_back(frames.IdOf(std::string(render::FunctionName(site->function)), ""));
    stacks.push_back(std::move(stack));
  }

  std::vector<SiteMeasure> shown;
  for (const SiteMeasure one : render::MeasuresOf(view.analysis())) {
    const bool any = std::any_of(stacks.begin(), stacks.end(), [&](const Stack& stack) {
      return ValueOf(view, *stack.site, one) != 0;
    });
    if (any || one == measure) shown.push_back(one);
  }
  const auto active = std::find(shown.begin(), shown.end(), measure) - shown.begin();

  const Json name = view.analysis().file;
  out.Write(absl::StrCat(
      "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n \"exporter\": "
      "\"memtrace\", \"name\": ", render::Dump(name), ", \"activeProfileIndex\": ", active,
      ",\n \"shared\": {\"frames\": "));
  render::WriteArray(frames.rows(), frames.rows().size(), [](const auto* row) {
    Json json = {{"name", row->first}};
    if (!row->second.empty()) json["file"] = row->second;
    return json;
  }, out);
  out.Write("},\n \"profiles\": [");
  for (size_t i = 0; i < shown.size() && !out.done(); ++i) {
    out.Write(i == 0 ? "\n  " : ",\n  ");
    WriteProfile(view, stacks, shown[i], out);
  }
  out.Write("]}\n");
}

}  // namespace memtrace::report::viewers
