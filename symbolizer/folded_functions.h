// DropFolded(): of functions of one unit that the linker folded into one, the one
// whose lines are shown.
//
// A linker that folds equal functions (--icf) leaves the debug information of all of them at the
// addresses of the one it kept. Which it was cannot be told, but name and line must be of the same:
// the line table has the first sequence, and the function is the one declared there.
//
// One thread; for DIEs of one unit.

#ifndef MEMTRACE_SYMBOLIZER_FOLDED_FUNCTIONS_H_
#define MEMTRACE_SYMBOLIZER_FOLDED_FUNCTIONS_H_

#include <elfutils/libdw.h>

#include <functional>
#include <vector>

#include "symbolizer/function_scanner.h"
#include "symbolizer/line_table.h"

namespace memtrace::symbolizer {

// Takes the ranges of the others out of `functions`, with those of what was inlined into them.
// `rows` gives the rows of addresses, which are sorted; it is only asked where
// functions were folded.
void DropFolded(
    Dwarf* dwarf,
    const std::function<std::vector<LineTable::Row>(const std::vector<uint64_t>&)>& rows,
    ScannedFunctions* functions);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_FOLDED_FUNCTIONS_H_
