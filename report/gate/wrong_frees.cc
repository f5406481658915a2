#include "report/gate/wrong_frees.h"

#include <algorithm>
#include <utility>

#include "report/render/free_errors.h"
#include "report/render/mismatches.h"
#include "report/render/text_report.h"
#include "report/suppress/memcheck_stack.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::gate {
namespace {

constexpr size_t kMostPlaces = 5;

}  // namespace

WrongFrees::WrongFrees(const GateInput& input, const render::ReportView& names,
                       suppress::Suppressions* suppressions)
    : processes_(input.processes.size()) {
  std::vector<const ProcessEnds*> order;
  for (const ProcessEnds& one : input.ends) order.push_back(&one);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const ProcessEnds* one) { return one->ends.times; });
  for (const ProcessEnds* one : order) {
    const GateProcess& process = input.processes[one->process];
    const BlockEnds& ends = one->ends;
    std::string allocator;
    if (one->invalid) {
      allocator = render::AllocationName(names, ends.from, ends.from_function);
    } else {
      const auto mismatch = render::MismatchOf(ends, names.symbols(), process.operators);
      if (!mismatch.has_value()) continue;
      allocator = mismatch->allocator;
    }
    const std::string called =
        render::CalledAtEnd(names.symbols(), ends.to, ends.by == BlockEnds::By::kRealloc);
    const std::vector<const Frame*> frames = names.Frames(ends.to);
    if (suppress::Suppression* match =
            suppressions->MatchFree(suppress::AsMemcheckSeesFree(called, frames))) {
      match->records += ends.times;
      continue;
    }
    Kind& kind =
        one->invalid ? processes_[one->process].invalid : processes_[one->process].mismatched;
    kind.times += ends.times;
    if (kind.places.size() == kMostPlaces) continue;
    kind.places.push_back({.allocator = std::move(allocator),
                           .called = symbolizer::Demangle(called),
                           .from = ends.from,
                           .to = ends.to,
                           .times = ends.times});
    for (const StackId stack : {ends.to, ends.from}) {
      if (stack) kind.stacks.push_back(stack);
    }
  }
}

}  // namespace memtrace::report::gate
