// Errors of frees as memcheck tells them: invalid frees, and those of blocks that came from another
// kind of function (mismatched ones). What they are is in InvalidFree and mismatches.h; here they
// get the words and the stacks that Valgrind would print.
//
// Where a free was is known of traces that have the stacks of frees (MEMTRACE_FREE_STACKS). Pure
// functions; one thread.

#ifndef MEMTRACE_REPORT_RENDER_FREE_ERRORS_H_
#define MEMTRACE_REPORT_RENDER_FREE_ERRORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "report/render/valgrind_losses.h"
#include "report/render/view.h"

namespace memtrace::report::render {

struct FreeError {
  enum class Kind { kInvalid, kMismatched } kind = Kind::kInvalid;
  uint64_t times = 0;
  std::vector<LossFrame> stack;            // of the free, innermost first
  std::string block;  // "Address 0x4a44040 is 0 bytes inside a block of size 2,000 free'd"
  std::vector<LossFrame> block_stack;      // of what `block` says last
  std::vector<LossFrame> allocated_stack;  // of a block that was freed
  bool suppressed = false;
  // In memtrace's terms: the stack of the free, and the function that was called there, "free" or
  // "_ZdlPvm".
  StackId site_stack;
  std::string called;
};

// For whoever wants to know where it was.
inline constexpr absl::string_view kFreeStacksHint =
    "Where they were freed is recorded by memtrace run --free-stacks (MEMTRACE_FREE_STACKS=on).";

absl::string_view Phrase(
    FreeError::Kind kind);  // memcheck's, "Mismatched free() / delete / delete []"
absl::string_view XmlKind(FreeError::Kind kind);  // "MismatchedFree"

// How many of the innermost frames are in operator delete.
size_t OperatorDeleteFrames(absl::Span<const Frame* const> frames);

// The function that the program called at `stack` to end a block: "free", "realloc", "_ZdlPvm".
std::string CalledAtEnd(const SiteSymbols& symbols, StackId stack, bool by_realloc);

// The errors, invalid frees first. Only certain ones: if the trace lacks allocations, the others
// may be no errors.
std::vector<FreeError> CollectFreeErrors(const ReportView& view, const LossOptions& options = {});

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_FREE_ERRORS_H_
