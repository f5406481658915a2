#include "report/command/heap_questions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "report/leak/leak_scans.h"
#include "report/names/site_symbols.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {

leak::LeakCheck::Observer HeapQuestions::Observer() {
  if (!hold_) return {};
  return leak::HoldScan(scan_, &held_);
}

std::vector<StackId> HeapQuestions::Stacks() const {
  std::vector<StackId> stacks;
  if (!held_.has_value()) return stacks;
  for (const leak::BlockSite& site : held_->sites) stacks.push_back(site.stack);
  return stacks;
}

absl::Status HeapQuestions::Answer(const render::ReportView& view, const StackTable& stacks,
                                   const leak::Resolution& resolution,
                                   symbolizer::SymbolizerProcess* symbolizer) {
  if (!questions_.any()) return absl::OkStatus();
  if (!held_.has_value()) {
    return absl::NotFoundError(absl::StrCat(
        "--graph, --why and --who-points-at need a memory scan, and ", view.analysis().file,
        " has none: ", leak::WhyNoScan(view.analysis())));
  }
  const leak::VariableFinder find = [&](const ModuleInfo& module,
                                        const std::vector<leak::VariableQuery>& queries) {
    std::vector<symbolizer::VariableQuery> asked;
    for (const leak::VariableQuery& query : queries) {
      asked.push_back({query.offset, query.thread_local_});
    }
    const int64_t loaded_ns =
        SiteSymbols::LoadedNs(view.analysis().process.start_realtime_ns, module);
    symbolizer::VariablesResult result =
        symbolizer->FindVariables({module.path, module.build_id, loaded_ns}, asked);
    leak::VariableAnswers answers{{}, std::move(result.message)};
    for (symbolizer::Variable& variable : result.variables) {
      answers.variables.push_back({std::move(variable.name), variable.start});
    }
    return answers;
  };
  report_.emplace(view.analysis(), *held_, find);
  auto answers =
      render::GraphView::Create(questions_, view, stacks, resolution, &*report_);
  if (!answers.ok()) return answers.status();
  answers_.emplace(*std::move(answers));
  return absl::OkStatus();
}

}  // namespace memtrace::report
