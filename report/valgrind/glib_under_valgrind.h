// What GLib does otherwise where it runs under Valgrind, which it asks: it tells memcheck of blocks
// within those that it takes from malloc, and lets the arrays of its hash tables begin large.
// Before 2.76 it takes each slice from malloc there, and slabs of them elsewhere (glib_slices.h).
//
// Pure functions; any thread.

#ifndef MEMTRACE_REPORT_VALGRIND_GLIB_UNDER_VALGRIND_H_
#define MEMTRACE_REPORT_VALGRIND_GLIB_UNDER_VALGRIND_H_

#include <string>
#include <vector>

#include "report/render/valgrind_losses.h"
#include "report/valgrind/comparison.h"

namespace memtrace::report::valgrind {

// A block that GLib told memcheck of: it has no function that allocates.
bool IsDeclaredByGLib(const render::Loss& there);

// The stack without malloc and GLib's functions around it: where such a block would be declared.
// Empty: it was not GLib that called them.
std::vector<render::LossFrame> InGLibWithoutMalloc(const render::Loss& here);

bool IsOfASlice(const std::vector<render::LossFrame>& stack);
// Of one that was taken from malloc by itself, not of a slab, and not of GLib's account of them.
bool IsASliceOfMalloc(const std::vector<render::LossFrame>& stack);
// As far as the losses of a run show it, that is so of all of its slices.
bool TakesSlicesFromMalloc(const std::vector<render::Loss>& losses);

// Why a row differs, if GLib is why; else empty. `declared`: it is of blocks that GLib told of
// there, and of those around them here.
struct GLibReason {
  std::string text;
  bool is_all = false;  // it explains the difference fully
};
GLibReason GLibsReason(const ComparedLeak& leak, bool declared);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_GLIB_UNDER_VALGRIND_H_
