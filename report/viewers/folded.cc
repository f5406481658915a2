// --format folded: stacks on one line each, as flamegraph.pl wants them.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/viewers/viewers.h"
#include "report/words/escape.h"

namespace memtrace::report::viewers {
namespace {

// The separator cannot be part of a name; a readable neighbour of it can.
std::string Name(absl::string_view name) {
  return words::EscapeControls(absl::StrReplaceAll(name, {{";", ":"}}));
}

}  // namespace

void RenderFolded(const ReportView& view, SiteMeasure measure, Sink& out) {
  std::map<std::string, uint64_t> lines;
  for (const Site* site : view.sites()) {
    const uint64_t value = ValueOf(view, *site, measure);
    if (value == 0) continue;
    const std::vector<const Frame*> frames = view.Frames(site->stack);
    std::string line;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      absl::StrAppend(&line, Name(render::FrameName(**frame)), ";");
    }
    if (frames.empty()) line = "[no stack];";
    absl::StrAppend(&line, render::FunctionName(site->function));
    lines[line] += value;
  }
  for (const auto& [line, value] : lines) {
    if (out.done()) return;
    out.Write(absl::StrCat(line, " ", value, "\n"));
  }
}

}  // namespace memtrace::report::viewers
