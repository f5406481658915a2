#include "report/import/command_import.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/import/ftrace_import.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

struct Flags {
  std::string kind, log, output;
  std::vector<std::string> system_maps;
  bool quiet = false;
};

absl::Status Import(const Flags& flags) {
  if (flags.kind != "ftrace") {
    return absl::InvalidArgumentError(
        absl::StrCat("import: \"", flags.kind, "\" is no kind of log; there is ftrace"));
  }
  import::FtraceImportOptions options{flags.log, flags.system_maps, flags.output};
  if (options.output.empty()) {
    if (options.log == "-") {
      return absl::InvalidArgumentError("a trace of standard input needs a name: -o FILE");
    }
    options.output = std::filesystem::path(options.log).replace_extension(".mtr").string();
  }
  const absl::Status other = RefuseToReplace(options.log, options.output, "the log that is read");
  if (!other.ok()) return other;
  const absl::Status no_trace = RefuseToReplaceNoTrace(options.output);
  if (!no_trace.ok()) return no_trace;
  const auto result = import::ImportFtrace(options);
  if (!result.ok()) return result.status();
  if (flags.quiet) return absl::OkStatus();
  std::string said = absl::StrCat(words::Plural(result->allocations, "allocation"), " and ",
                                  words::Plural(result->frees, "free"), " of ",
                                  words::Plural(result->threads, "thread"), " from ",
                                  words::Plural(result->call_sites, "call site"));
  if (result->unnamed_call_sites > 0) {
    absl::StrAppend(&said, ", ", result->unnamed_call_sites, " without a name");
  }
  if (result->failed > 0) absl::StrAppend(&said, "; ", result->failed, " more got no memory");
  if (result->lost_events > 0) {
    absl::StrAppend(&said, "; the log lost ", result->lost_more ? "at least " : "",
                    words::Plural(result->lost_events, "event"));
  }
  if (result->bad_lines > 0) {
    absl::StrAppend(&said, "; ", words::Plural(result->bad_lines, "line"),
                    " not understood, the first: ", result->first_bad);
  }
  std::fprintf(stderr, "memtrace: %s; next: memtrace report %s\n",
               words::EscapeControls(said).c_str(), words::ShellFile(options.output).c_str());
  return absl::OkStatus();
}

}  // namespace

void RegisterImportCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("import", "A trace from another tool's log");
  command->add_option("KIND", flags->kind, "ftrace: kmem events of the kernel, as text")
      ->required()->type_name("");
  command->add_option("LOG", flags->log, "/sys/kernel/tracing/trace, or what trace-cmd\n"
                      "report prints; - is standard input")
      ->required()->type_name("");
  command->add_option("--system-map", flags->system_maps,
                      "System.map of the kernel, or a copy of its\n"
                      "/proc/kallsyms: names of call sites; repeatable")
      ->type_name("MAP")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("-o,--output", flags->output,
                   "The trace; LOG with the ending .mtr if not\ngiven")
      ->type_name("FILE");
  command->add_flag("-q,--quiet", flags->quiet, "No line at the end");
  command->footer(
      "Examples:\n"
      "  memtrace import ftrace trace.txt --system-map /boot/System.map-6.1.0\n"
      "  trace-cmd report | memtrace import ftrace - -o kernel.mtr\n"
      "  memtrace report trace.mtr --sort wasted");
  command->callback([flags, exit_code] { *exit_code = ExitCodeOf(Import(*flags)); });
}

}  // namespace memtrace::report
