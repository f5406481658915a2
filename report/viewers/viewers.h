// The formats of other people's viewers: flame graphs, pprof, speedscope, KCachegrind.
// docs/viewers.md tells how each is opened, and what of a trace it can hold.
//
// Each writes the sites of a view, so that the sum over the file is the report's own total
// (of the sites that match). Pure functions; one thread.

#ifndef MEMTRACE_REPORT_VIEWERS_VIEWERS_H_
#define MEMTRACE_REPORT_VIEWERS_VIEWERS_H_

#include <string>

#include "absl/status/status.h"
#include "report/render/site_measure.h"
#include "report/render/view.h"
#include "report/trace/stack_table.h"
#include "report/words/sink.h"

namespace memtrace::report::viewers {

using render::ReportView;
using words::Sink;
using render::SiteMeasure;

// A line for each stack: "outermost;...;innermost;malloc 42". For flamegraph.pl, inferno,
// speedscope. Stacks that read alike are one line, and one without any is left out.
void RenderFolded(const ReportView& view, SiteMeasure measure, Sink& out);

// https://www.speedscope.app/file-format-schema.json: one profile for each measure that the
// trace has anything of; `measure` is the one that is shown first.
void RenderSpeedscope(const ReportView& view, SiteMeasure measure, Sink& out);

// A gzip'ed profile.proto with all measures as sample types; `measure` is the default.
// Unimplemented where memtrace was built without protozero.
absl::Status RenderPprof(const ReportView& view, SiteMeasure measure, Sink& out);
bool HasPprof();

// The format of callgrind.out files: all measures as events, `measure` first, because readers
// sort by that. Costs are at the line of the innermost frame, calls have inclusive costs.
void RenderCallgrind(const ReportView& view, SiteMeasure measure, Sink& out);

// Writes what heaptrack_interpret writes: every event, read from `file` again. `stacks` are those
// of the view. InvalidArgument: the trace does not have every event.
absl::Status RenderHeaptrack(const ReportView& view, const std::string& file, StackTable* stacks,
                             Sink& out);

}  // namespace memtrace::report::viewers

#endif  // MEMTRACE_REPORT_VIEWERS_VIEWERS_H_
