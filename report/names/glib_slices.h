// GLib's slices: structures of its lists, queues and trees, and of programs. Before 2.76 they lie
// in slabs of several, which are taken aligned, beside what gslice.c needs for its account of them;
// with G_SLICE=always-malloc, under Valgrind, and since 2.76 each is of malloc.
//
// Pure functions; any thread.

#ifndef MEMTRACE_REPORT_NAMES_GLIB_SLICES_H_
#define MEMTRACE_REPORT_NAMES_GLIB_SLICES_H_

#include "absl/strings/string_view.h"
#include "format/event_words.h"
#include "report/findings/leaks.h"
#include "report/names/site_symbols.h"

namespace memtrace::report {

inline constexpr char kSlabsHideSlices[] =
    "GLib's slices (of lists, queues, trees) lie in slabs: one that is lost is not seen, and what "
    "it points to counts as reachable. With G_SLICE=always-malloc in the program's environment "
    "each is a block, as Valgrind sees it";

// A function that gives out slices or takes them back, g_slice_alloc() or the like.
bool IsOfGLibsSlices(absl::string_view function);

// What such a function allocated by `function` with that stack is a slab, not one slice.
bool IsASlab(const SiteSymbols& symbols, format::AllocFunction function, StackId stack);

// Whether blocks of a scan are slabs.
bool HasSlabs(const SiteSymbols& symbols, const LeakScan& scan);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_GLIB_SLICES_H_
