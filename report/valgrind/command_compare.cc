#include "report/valgrind/command_compare.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/base/memory_limit.h"
#include "report/cli/common_options.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/html/page.h"
#include "report/leak/held_scan.h"
#include "report/render/output.h"
#include "report/render/valgrind_losses.h"
#include "report/trace/file_header.h"
#include "report/valgrind/comparison.h"
#include "report/valgrind/kept_by_mappings.h"
#include "report/valgrind/named_trace.h"
#include "report/valgrind/render_comparison.h"
#include "report/valgrind/valgrind_run.h"
#include "symbolizer/symbol_cache.h"

namespace memtrace::report {
namespace {

using namespace valgrind;  // NOLINT: this file joins its parts

struct CompareFlags {
  std::string trace, xml, format = "text", output, sysroot;
  std::vector<std::string> debug_dirs;
  bool full = false, debuginfod = false;
};

absl::StatusOr<int> RunCompare(const CompareFlags& flags) {
  if (flags.format == "html") {
    absl::Status can = html::PageIsThere();
    can.Update(RefuseTerminal(flags.format, flags.output));
    if (!can.ok()) return can;
  }
  LimitMemory();
  absl::Status status = RefuseToReplace(flags.trace, flags.output);
  status.Update(RefuseToReplace(flags.xml, flags.output, "the log that is read"));
  if (!status.ok()) return status;
  // The small one first: what is wrong with it is said at once.
  if (BeginsAsATrace(flags.xml)) {
    return absl::InvalidArgumentError(
        BeginsAsATrace(flags.trace)
            ? absl::StrCat(
                  flags.xml,
                  ": this is a trace, no XML of Valgrind's; memtrace diff compares two traces")
            : absl::StrCat(flags.xml,
                           ": this is the trace; it comes first: memtrace compare TRACE XML"));
  }
  const absl::StatusOr<ValgrindRun> there = ReadValgrindXml(flags.xml);
  if (!there.ok()) return there.status();
  symbolizer::Options options;
  options.debug_dirs.insert(options.debug_dirs.begin(), flags.debug_dirs.begin(),
                            flags.debug_dirs.end());
  options.sysroot = flags.sysroot;
  options.debuginfod = flags.debuginfod;
  options.cache_dir = symbolizer::SymbolCacheDirectory();
  std::optional<leak::HeldScan> held;
  const auto trace =
      NamedTrace::Read(flags.trace, options, {}, leak::HoldScan(/*number=*/0, &held));
  if (!trace.ok()) return trace.status();
  const Analysis& analysis = (*trace)->analysis();
  if (analysis.process.sample_bytes != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(flags.trace,
                     ": this is a sample, whose amounts are estimates, and Valgrind's are exact; "
                     "trace the program without --sample-bytes (MEMTRACE_SAMPLE_BYTES)"));
  }
  render::LossList here = render::CollectLosses((*trace)->view(), {});
  if (held.has_value()) MarkKeptByMappings(analysis, *held, &here);
  held.reset();
  std::vector<render::Loss> allocated;
  if (analysis.process.forked) {
    for (const Site* site : (*trace)->view().sites()) {
      allocated.push_back(render::LossStack((*trace)->view(), site->stack, site->function));
    }
  }
  const Comparison comparison = Compare(analysis, here, *there, allocated);

  absl::StatusOr<render::Output> out = render::Output::Open(flags.output);
  if (!out.ok()) return out.status();
  if (flags.format == "json") {
    RenderComparisonJson(analysis, *there, comparison, *out);
  } else if (flags.format == "html") {
    RenderComparisonHtml(analysis, *there, comparison, *out);
  } else {
    ComparisonText text;
    text.style = render::StyleFor(out->fd(), render::ColorMode::kAuto, 0);
    text.full = flags.full;
    out->Write(RenderComparisonText(analysis, *there, comparison, text));
  }
  status = out->Commit();
  if (!status.ok()) return status;
  return comparison.differences() == 0 ? 0 : 1;
}

}  // namespace

void RegisterCompareCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "A trace beside what Valgrind found in another run");
  command->add_option("FILE", flags->trace, "The trace")->required()->type_name("");
  command
      ->add_option("XML", flags->xml,
                   "What valgrind --leak-check=full\n--show-leak-kinds=all --xml=yes wrote")
      ->required()
      ->type_name("");
  command->add_option("-f,--format", flags->format, "text (default), json, html")
      ->type_name("F")
      ->check(CLI::IsMember({"text", "json", "html"}));
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  command->add_flag("--full", flags->full, "Every frame of every stack");
  AddNameOptions(command, {&flags->debug_dirs, &flags->sysroot, &flags->debuginfod});
  command->footer(
      "Exit status 0: they agree, or differ only as is expected; 1: they differ; 2: a\n"
      "file cannot be used.\n\n"
      "Example:\n"
      "  valgrind --leak-check=full --show-leak-kinds=all --xml=yes \\\n"
      "           --xml-file=app.xml ./app\n"
      "  memtrace compare app.mtr app.xml");
  command->callback([flags, exit_code] {
    const absl::StatusOr<int> done = RunCompare(*flags);
    *exit_code = done.ok() ? *done : ExitCodeOf(done.status());
  });
}

}  // namespace memtrace::report
