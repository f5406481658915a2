#include "report/render/mismatches.h"

#include <utility>

#include "report/render/frames_filter.h"
#include "report/render/text_report.h"

namespace memtrace::report::render {
namespace {

constexpr std::pair<absl::string_view, HeapCall> kFunctions[] = {
    {"malloc", HeapCall::kMalloc},
    {"calloc", HeapCall::kMalloc},
    {"realloc", HeapCall::kMalloc},
    {"reallocarray", HeapCall::kMalloc},
    {"posix_memalign", HeapCall::kMalloc},
    {"aligned_alloc", HeapCall::kMalloc},
    {"memalign", HeapCall::kMalloc},
    {"valloc", HeapCall::kMalloc},
    {"pvalloc", HeapCall::kMalloc},
    {"operator new", HeapCall::kNew},
    {"operator new[]", HeapCall::kNewArray},
    {"free", HeapCall::kFree},
    {"free_sized", HeapCall::kFree},
    {"free_aligned_sized", HeapCall::kFree},
    {"operator delete", HeapCall::kDelete},
    {"operator delete[]", HeapCall::kDeleteArray},
};

HeapCall CallOf(const std::string& function) {
  const absl::string_view name = QualifiedName(function);
  for (const auto& [known, call] : kFunctions) {
    if (known == name) return call;
  }
  return HeapCall::kUnknown;
}

// From the innermost call outwards: what a step names, and while a step is inside of an operator,
// that operator, and what the next one says of it. `single` may have been reached by a jump from
// `array`, so that by itself it is `either`.
HeapCall Classify(const std::vector<SiteSymbols::Call>& calls, HeapCall plain, HeapCall single,
                  HeapCall array, HeapCall either) {
  HeapCall found = HeapCall::kUnknown;
  for (const SiteSymbols::Call& call : calls) {
    const HeapCall named = CallOf(call.called);
    if (named == plain || named == single || named == array) found = named;
    const HeapCall inside = CallOf(call.function);
    if (inside != single && inside != array) break;
    found = inside == single ? either : array;
  }
  return found;
}

absl::string_view NameOf(HeapCall call) {
  switch (call) {
    case HeapCall::kUnknown: return "";
    case HeapCall::kMalloc: return "malloc";
    case HeapCall::kNew:
    case HeapCall::kNewEither: return "operator new";
    case HeapCall::kNewArray: return "operator new[]";
    case HeapCall::kFree: return "free";
    case HeapCall::kDelete:
    case HeapCall::kDeleteEither: return "operator delete";
    case HeapCall::kDeleteArray: return "operator delete[]";
    case HeapCall::kRealloc: return "realloc";
  }
  return "";
}

}  // namespace

bool AreMismatched(HeapCall allocated, HeapCall ended) {
  switch (allocated) {
    case HeapCall::kMalloc:
      return ended == HeapCall::kDelete || ended == HeapCall::kDeleteArray ||
             ended == HeapCall::kDeleteEither;
    case HeapCall::kNew:
      return ended == HeapCall::kFree || ended == HeapCall::kRealloc ||
             ended == HeapCall::kDeleteArray;
    case HeapCall::kNewArray:
      return ended == HeapCall::kFree || ended == HeapCall::kRealloc || ended == HeapCall::kDelete;
    case HeapCall::kNewEither:
      return ended == HeapCall::kFree || ended == HeapCall::kRealloc;
    default:
      return false;
  }
}

HeapCall AllocatedBy(const std::vector<SiteSymbols::Call>& calls) {
  return Classify(calls, HeapCall::kMalloc, HeapCall::kNew, HeapCall::kNewArray,
                  HeapCall::kNewEither);
}

HeapCall FreedBy(const std::vector<SiteSymbols::Call>& calls) {
  return Classify(calls, HeapCall::kFree, HeapCall::kDelete, HeapCall::kDeleteArray,
                  HeapCall::kDeleteEither);
}

std::vector<Mismatch> Mismatches(const ReportView& view) {
  std::vector<Mismatch> found;
  const SiteSymbols& symbols = view.symbols();
  for (const BlockEnds& ends : view.analysis().block_ends) {
    if (!view.Matches(ends.from)) continue;
    const std::string by_stack = AllocationName(view, ends.from, ends.from_function);
    HeapCall allocated = AllocatedBy(symbols.InnermostCalls(ends.from));
    if (allocated == HeapCall::kUnknown && by_stack != FunctionName(ends.from_function)) {
      allocated = HeapCall::kNewEither;
    }
    const HeapCall ended = ends.by == BlockEnds::By::kRealloc
                               ? HeapCall::kRealloc
                               : FreedBy(symbols.InnermostCalls(ends.to));
    if (!AreMismatched(allocated, ended)) continue;
    const bool by_name = allocated == HeapCall::kNew || allocated == HeapCall::kNewArray;
    found.push_back({ends.from, ends.to, by_name ? std::string(NameOf(allocated)) : by_stack,
                     std::string(NameOf(ended)), ends.times});
  }
  return found;
}

}  // namespace memtrace::report::render
