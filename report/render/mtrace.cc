// --format mtrace: the words of glibc's mtrace(1) script, so that whoever reads
// its output, person or program, can read ours. One line for every block:
//
//   Memory not freed:
//   -----------------
//              Address     Size     Caller
//   0x000055e0c9b2b6d0     0x64  at /src/leak.c:12

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/analysis/coverage.h"
#include "report/base/path.h"
#include "report/render/formats.h"
#include "report/render/selection_lines.h"
#include "report/words/escape.h"

namespace memtrace::report::render {
namespace {

// mtrace gives file:line, else the function and address, else the address. Its
// caller is the caller of malloc; ours looks through wrappers like operator new.
std::string Place(const Frame* frame) {
  if (frame == nullptr) return "??:0";
  if (!frame->file.empty()) return absl::StrCat(frame->file, ":", frame->line);
  if (!frame->function.empty()) {
    return absl::StrFormat("%s @ %s+0x%x", frame->function, FileNameOf(frame->module),
                           frame->offset);
  }
  return FrameName(*frame);
}

}  // namespace

void RenderMtrace(const ReportView& view, words::Sink& out) {
  std::vector<const LiveBlock*> blocks;
  for (const LiveBlock& block : view.analysis().live) {
    if (view.Matches(block.stack)) blocks.push_back(&block);
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const LiveBlock* a, const LiveBlock* b) { return a->address < b->address; });
  const std::vector<std::string> selection = SelectionLinesWithRange(view);
  for (const std::string& only : selection)
    out.Write(absl::StrCat("Only ", words::EscapeControls(only), ".\n"));
  if (view.sampled()) {
    out.Write(absl::StrCat("Sampled every ", view.analysis().process.sample_bytes,
                           " bytes: most blocks are not in this list.\n"));
  }
  if (blocks.empty()) {
    const Coverage& coverage = view.analysis().coverage;
    if (coverage.events_missing) {
      out.Write("Not known whether there are leaks: not all events are in the trace.\n");
    } else if (const CoverageNote stops = StopsNote(coverage); !stops.harmless) {
      out.Write(absl::StrCat("Not known whether there are leaks: ", stops.text, ".\n"));
    } else if (!AllRecorded(coverage)) {
      out.Write("Not known whether there are leaks: not all was recorded.\n");
    } else if (!selection.empty()) {
      out.Write("None of these was left unfreed.\n");
    } else if (!view.sampled()) {
      out.Write("No memory leaks.\n");
    }
    return;
  }
  out.Write("\nMemory not freed:\n-----------------\n           Address     Size     Caller\n");
  for (const LiveBlock* block : blocks) {
    if (out.done()) return;
    // perl's %#x and C's differ from "0x%x" for 0 alone: it has no prefix.
    const std::string size = block->bytes == 0 ? "0" : absl::StrFormat("0x%x", block->bytes);
    out.Write(absl::StrFormat("0x%016x %8s  at %s\n", block->address, size,
                              words::EscapeControls(Place(view.Caller(block->stack)))));
  }
}

}  // namespace memtrace::report::render
