#include "report/render/scan_notes.h"

#include <cstddef>
#include <utility>

#include "report/analysis/unseen_allocators.h"
#include "report/leak/heuristics.h"
#include "report/names/glib_slices.h"
#include "report/names/perl_frames.h"

namespace memtrace::report::render {

std::vector<std::string> NotesOnScan(const ReportView& view, const LeakScan& scan) {
  std::vector<std::string> notes;
  if (scan.state != LeakScan::State::kDone) return notes;
  // Slabs that are told by what lies in them: by a GLib without symbols, for instance.
  const LeakAmount& by_links = scan.by_heuristic[static_cast<size_t>(leak::Pointer::kGSlice)];
  if (by_links.blocks != 0 || HasSlabs(view.symbols(), scan)) notes.emplace_back(kSlabsHideSlices);
  if (view.analysis().coverage.pymalloc) notes.emplace_back(kPymallocHides);
  if (std::string note = PerlNote(view.symbols(), view.analysis(), scan); !note.empty()) {
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace memtrace::report::render
