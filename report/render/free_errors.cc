#include "report/render/free_errors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "report/analysis/invalid_frees.h"
#include "report/render/mismatches.h"
#include "report/words/units.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::render {
namespace {

// `called`: what the program called there, as its linker knows it.
std::vector<LossFrame> FreeStack(const ReportView& view, StackId stack, absl::string_view called,
                                 const LossOptions& options) {
  const std::vector<const Frame*> frames = view.Frames(stack);
  std::vector<LossFrame> shown = {
      TracerFrame(view.analysis(), symbolizer::Demangle({called.data(), called.size()}))};
  // Valgrind replaces operator delete; the free in it is then not called.
  AppendCallers(view, frames, OperatorDeleteFrames(frames), options, &shown);
  return shown;
}

FreeError OfInvalid(const ReportView& view, const InvalidFree& story, const LossOptions& options) {
  FreeError error;
  error.times = story.times;
  error.site_stack = story.again.stack;
  error.called = CalledAtEnd(view.symbols(), story.again.stack, story.again.by_realloc);
  error.stack = FreeStack(view, story.again.stack, error.called, options);
  const bool was_freed = story.kind != InvalidFree::Kind::kInsideLive;
  error.block = absl::StrFormat("Address 0x%x is %s bytes inside a block of size %s %s",
                                story.address, words::Count(story.offset),
                                words::Count(story.block_bytes), was_freed ? "free'd" : "alloc'd");
  std::vector<LossFrame> allocated =
      LossStack(view, story.allocated.stack, story.function, options).stack;
  if (!was_freed) {
    error.block_stack = std::move(allocated);
    return error;
  }
  error.block_stack =
      FreeStack(view, story.freed.stack,
                CalledAtEnd(view.symbols(), story.freed.stack, story.freed.by_realloc), options);
  error.allocated_stack = std::move(allocated);
  return error;
}

FreeError OfMismatch(const ReportView& view, const Mismatch& pair, const LossOptions& options) {
  FreeError error;
  error.kind = FreeError::Kind::kMismatched;
  error.times = pair.times;
  error.site_stack = pair.ended;
  error.called = CalledAtEnd(view.symbols(), pair.ended, pair.ended_by == "realloc");
  error.stack = FreeStack(view, pair.ended, error.called, options);
  error.block = "Address is 0 bytes inside a block alloc'd";  // of several blocks, mostly
  error.block_stack = LossStack(view, pair.allocated, pair.function, options).stack;
  return error;
}

}  // namespace

size_t OperatorDeleteFrames(absl::Span<const Frame* const> frames) {
  size_t count = 0;
  while (count < frames.size() && absl::StartsWith(frames[count]->function, "operator delete"))
    ++count;
  return count;
}

std::string CalledAtEnd(const SiteSymbols& symbols, StackId stack, bool by_realloc) {
  if (by_realloc) return "realloc";
  std::string called = stack ? CalledToFree(symbols.InnermostCalls(stack)) : "";
  return called.empty() ? "free" : called;
}

absl::string_view Phrase(FreeError::Kind kind) {
  return kind == FreeError::Kind::kInvalid ? "Invalid free() / delete / delete[] / realloc()"
                                           : "Mismatched free() / delete / delete []";
}

absl::string_view XmlKind(FreeError::Kind kind) {
  return kind == FreeError::Kind::kInvalid ? "InvalidFree" : "MismatchedFree";
}

std::vector<FreeError> CollectFreeErrors(const ReportView& view, const LossOptions& options) {
  std::vector<FreeError> errors;
  for (const InvalidFree* story : CertainInvalidFrees(view.analysis())) {
    if (view.Matches(story->allocated.stack)) errors.push_back(OfInvalid(view, *story, options));
  }
  for (const Mismatch& pair : Mismatches(view)) errors.push_back(OfMismatch(view, pair, options));
  return errors;
}

}  // namespace memtrace::report::render
