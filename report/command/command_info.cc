// memtrace info

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "report/analysis/unseen_allocators.h"
#include "report/base/memory_limit.h"
#include "report/cli/common_options.h"
#include "report/cli/exit_status.h"
#include "report/command/commands.h"
#include "report/command/info.h"
#include "report/names/site_symbols.h"
#include "report/words/escape.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

constexpr char kInfoFooter[] = R"(
Example:
  memtrace info app.mtr)";

// By the symbols of the files on this machine.
std::vector<std::string> Symbolized(const symbolizer::Options& options, const AnalyzedTrace& trace,
                                    std::span<const StackNode> nodes) {
  // Each node as a stack of its own, of a process that has nothing else.
  Analysis modules;
  modules.modules = trace.analysis.modules;
  StackTable stacks;
  std::vector<StackId> ids;
  for (const StackNode& node : nodes) ids.push_back(stacks.Intern({}, node.pc, node.instance));
  symbolizer::SymbolizerProcess symbolizer(options);
  const SiteSymbols symbols(
      modules, stacks, SymbolizeBy(&symbolizer), {}, ids);
  std::vector<std::string> names = ModuleAndOffset(trace, nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<FrameId> frames = symbols.Stack(ids[i]);
    // The function that has a frame; the others are inlined into it.
    if (frames.empty() || symbols.frame(frames.back()).function.empty()) continue;
    names[i] = absl::StrCat(words::EscapeControls(symbols.frame(frames.back()).function), " (",
                            names[i], ")");
  }
  return names;
}

}  // namespace

void RegisterInfoCommand(CLI::App& app, int* exit_code) {
  CLI::App* info = app.add_subcommand(
      "info", "What was traced, what is missing, what it cost");
  auto options = std::make_shared<InfoOptions>();
  info->footer(kInfoFooter);
  info->add_option("FILE", options->file, "The trace")->required()->type_name("");
  auto symbols = std::make_shared<symbolizer::Options>();
  auto debug_dirs = std::make_shared<std::vector<std::string>>();
  AddNameOptions(info, {debug_dirs.get(), &symbols->sysroot});
  options->names = [=](const AnalyzedTrace& trace, std::span<const StackNode> nodes) {
    // The user's come first; the usual one stays.
    symbolizer::Options all = *symbols;
    all.cache_dir = symbolizer::SymbolCacheDirectory();
    all.debug_dirs.insert(all.debug_dirs.begin(), debug_dirs->begin(), debug_dirs->end());
    return Symbolized(all, trace, nodes);
  };
  options->examine = [=](Analysis* analysis) {
    symbolizer::SymbolizerProcess process(*symbols);
    FillUnseenAllocators(ModuleNamesBy(&process), analysis);
  };
  info->callback([options, exit_code] {
    LimitMemory();
    *exit_code = ExitCodeOf(RunInfo(*options, std::cout));
  });
}

}  // namespace memtrace::report
