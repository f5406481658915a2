#include "report/render/mismatches.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "report/analysis/coverage.h"

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
    {"free", HeapCall::kFree},
    {"free_sized", HeapCall::kFree},
    {"free_aligned_sized", HeapCall::kFree},
    {"_Znw", HeapCall::kNew},
    {"_Zna", HeapCall::kNewArray},
    {"_Zdl", HeapCall::kDelete},
    {"_Zda", HeapCall::kDeleteArray},
};

// The texts that may follow the first four letters of an operator: the forms that the standard
// knows. A program may have others, whose blocks end as it likes: operator new(size_t, Arena&).
constexpr absl::string_view kForms[] = {
    "m", "mRKSt9nothrow_t", "mSt11align_val_t", "mSt11align_val_tRKSt9nothrow_t",
    "Pv", "Pvm", "PvSt11align_val_t", "PvmSt11align_val_t", "PvRKSt9nothrow_t",
    "PvSt11align_val_tRKSt9nothrow_t"};

HeapCall CallOf(absl::string_view name) {
  if (absl::StartsWith(name, "_Z")) {
    const absl::string_view form = name.substr(std::min<size_t>(4, name.size()));
    if (std::find(std::begin(kForms), std::end(kForms), form) == std::end(kForms)) {
      return HeapCall::kUnknown;
    }
    name = name.substr(0, 4);
  }
  for (const auto& [known, call] : kFunctions) {
    if (known == name) return call;
  }
  return HeapCall::kUnknown;
}

// From the innermost call outwards: what a step names, and while a step is inside of an operator,
// that operator, and what the next one says of it. `single` may have been reached by a jump from
// `array`, so that by itself it is `either`. `in_operator`: the first of these, if any.
HeapCall Classify(const std::vector<SiteSymbols::Call>& calls, HeapCall plain, HeapCall single,
                  HeapCall array, HeapCall either, const SiteSymbols::Call** in_operator) {
  HeapCall found = HeapCall::kUnknown;
  *in_operator = nullptr;
  for (const SiteSymbols::Call& call : calls) {
    const HeapCall named = CallOf(call.called);
    if (named == plain || named == single || named == array) found = named;
    const HeapCall inside = CallOf(call.function);
    if (inside != single && inside != array) break;
    if (*in_operator == nullptr) *in_operator = &call;
    found = inside == single ? either : array;
  }
  // An operator of the program's own that leaves the work to another function.
  const bool for_operator = std::any_of(calls.begin(), calls.end(), [&](const auto& call) {
    const HeapCall inside = CallOf(call.function);
    return inside == single || inside == array;
  });
  return found == plain && for_operator ? HeapCall::kUnknown : found;
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

HeapCall AllocatedBy(const std::vector<SiteSymbols::Call>& calls, bool has_cxx_runtime) {
  const SiteSymbols::Call* in_operator;
  const HeapCall found = Classify(calls, HeapCall::kMalloc, HeapCall::kNew, HeapCall::kNewArray,
                                  HeapCall::kNewEither, &in_operator);
  if (found == HeapCall::kMalloc || found == HeapCall::kUnknown) return found;
  // An operator new of the runtime is on the stack. One that is not, or is another's, is the
  // program's own, and so is what ends its blocks.
  const bool is_runtimes =
      in_operator != nullptr && (in_operator->in_cxx_runtime || !has_cxx_runtime);
  return is_runtimes ? found : HeapCall::kUnknown;
}

HeapCall FreedBy(const std::vector<SiteSymbols::Call>& calls) {
  const SiteSymbols::Call* in_operator;
  return Classify(calls, HeapCall::kFree, HeapCall::kDelete, HeapCall::kDeleteArray,
                  HeapCall::kDeleteEither, &in_operator);
}

std::string CalledToFree(const std::vector<SiteSymbols::Call>& calls) {
  const auto frees = [](const std::string& name) {
    const HeapCall call = CallOf(name);
    return call == HeapCall::kFree || call == HeapCall::kDelete || call == HeapCall::kDeleteArray;
  };
  std::string found;
  for (const SiteSymbols::Call& call : calls) {
    if (frees(call.called)) found = call.called;
    if (!frees(call.function) || CallOf(call.function) == HeapCall::kFree) break;
    found = call.function;
  }
  return found;
}

// By what a scan found, or where there is none by the note that the library left.
static bool BlocksPassBy(const Analysis& analysis) {
  return std::ranges::any_of(
             analysis.leak_scans,
             [](const LeakScan& scan) { return scan.allocations_unseen && scan.frees_unseen; }) ||
         std::ranges::any_of(analysis.coverage.notes, TellsOfDeepBind);
}

CxxOperators CxxOperatorsOf(const Analysis& analysis) {
  return {std::ranges::any_of(
              analysis.modules,
              [](const ModuleInfo& module) { return SiteSymbols::IsCxxRuntime(module.path); }),
          analysis.coverage.own_operator_delete, BlocksPassBy(analysis)};
}

std::optional<Mismatch> MismatchOf(const BlockEnds& ends, const SiteSymbols& symbols,
                                   const CxxOperators& operators) {
  if (operators.passed_by) return std::nullopt;
  const HeapCall allocated = AllocatedBy(symbols.InnermostCalls(ends.from), operators.has_runtime);
  const HeapCall ended = ends.by == BlockEnds::By::kRealloc
                             ? HeapCall::kRealloc
                             : FreedBy(symbols.InnermostCalls(ends.to));
  const bool by_delete = ended != HeapCall::kRealloc && ended != HeapCall::kFree;
  if (!AreMismatched(allocated, ended) || (by_delete && operators.has_other_deletes))
    return std::nullopt;
  return Mismatch{ends.from, ends.to,
                  std::string(allocated == HeapCall::kMalloc ? FunctionName(ends.from_function)
                                                             : NameOf(allocated)),
                  std::string(NameOf(ended)), ends.times, ends.from_function};
}

std::vector<Mismatch> Mismatches(const ReportView& view) {
  std::vector<Mismatch> found;
  const CxxOperators operators = CxxOperatorsOf(view.analysis());
  for (const BlockEnds& ends : view.analysis().block_ends) {
    if (!view.Matches(ends.from)) continue;
    if (auto one = MismatchOf(ends, view.symbols(), operators)) found.push_back(*std::move(one));
  }
  return found;
}

}  // namespace memtrace::report::render
