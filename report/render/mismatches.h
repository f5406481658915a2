// Mismatched pairs: blocks that ended by another kind of function than they came from: operator new
// and free or realloc, operator new[] and operator delete, malloc and operator delete.
//
// realloc of a block of operator new is seen in every trace, frees in those that have the stacks of
// frees (MEMTRACE_FREE_STACKS). What a place called is told by the stack, and by the call
// instruction where the called function had jumped on (symbolizer/call_targets.h): libstdc++'s
// operator new[] jumps to operator new, its operators delete to free. Where neither says it (calls
// through pointers, a function of the program's own that jumps on) a pair is not called mismatched,
// nor are blocks of an operator new that the program has replaced: it has replaced what ends them,
// too. What an operator delete of its own ends may come from anywhere.
//
// Pure functions of a ReportView.

#ifndef MEMTRACE_REPORT_RENDER_MISMATCHES_H_
#define MEMTRACE_REPORT_RENDER_MISMATCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "report/render/view.h"

namespace memtrace::report::render {

// How a block came to be, or ended.
enum class HeapCall : uint8_t {
  kUnknown,
  kMalloc,       // and all that free() ends
  kNew,
  kNewArray,
  kNewEither,    // one of these two
  kFree,
  kDelete,
  kDeleteArray,
  kDeleteEither,
  kRealloc,
};
bool AreMismatched(HeapCall allocated, HeapCall ended);

// The function that the program called, by the innermost calls of a stack, innermost first.
// `has_cxx_runtime`: libstdc++ or libc++ is there as a library, and not within the program.
HeapCall AllocatedBy(const std::vector<SiteSymbols::Call>& calls, bool has_cxx_runtime);
HeapCall FreedBy(const std::vector<SiteSymbols::Call>& calls);
// The name of the function that the program called to free: "free", "_ZdlPvm". Empty: not known.
std::string CalledToFree(const std::vector<SiteSymbols::Call>& calls);

// What is known of operator new and delete in a process.
struct CxxOperators {
  bool has_runtime = false;         // libstdc++ or libc++ is a module of its own
  bool has_other_deletes = false;   // Coverage::own_operator_delete
  // Something allocates and frees blocks unseen (a plugin with RTLD_DEEPBIND): then the block that
  // ends at an address may be another one than the last that was seen there.
  bool passed_by = false;
};
CxxOperators CxxOperatorsOf(const Analysis& analysis);

struct Mismatch {
  StackId allocated, ended;
  std::string allocator;  // "operator new[]", "calloc"
  std::string ended_by;   // "realloc", "free", "operator delete"
  uint64_t times = 0;
  format::AllocFunction function = format::AllocFunction::kMalloc;  // interposed
};
// Nothing: they fit, or are not known.
std::optional<Mismatch> MismatchOf(const BlockEnds& ends, const SiteSymbols& symbols,
                                   const CxxOperators& operators);
// Most times first.
std::vector<Mismatch> Mismatches(const ReportView& view);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_MISMATCHES_H_
