// memtrace pack

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "report/base/memory_limit.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/command/commands.h"
#include "report/trace/pack.h"
#include "report/words/escape.h"

namespace memtrace::report {
namespace {

constexpr char kPackFooter[] = R"(
The raw trace stays. Wait until its program has ended: what it writes later is
not packed.

Example:
  memtrace pack app.mtr        writes app.packed.mtr)";

int Pack(const PackOptions& options) {
  LimitMemory();
  for (const absl::Status& status :
       {RefuseToReplace(options.file, options.output), RefuseToReplaceNoTrace(options.output)}) {
    if (!status.ok()) return ExitCodeOf(status);
  }
  auto result = RunPack(options);
  if (!result.ok()) return ExitCodeOf(result.status());
  absl::FPrintF(
      stdout, "%s: %d bytes, %.1f %% of %s\n", words::EscapeControls(result->output),
      result->packed_bytes,
      100.0 * static_cast<double>(result->packed_bytes) / static_cast<double>(result->raw_bytes),
      words::EscapeControls(options.file));
  if (result->damaged_blocks != 0) {
    absl::FPrintF(stderr, "memtrace: %s: %d damaged block%s left out\n",
                  words::EscapeControls(options.file), result->damaged_blocks,
                  result->damaged_blocks == 1 ? " was" : "s were");
  }
  if (result->incomplete || result->damaged_blocks != 0) {
    absl::FPrintF(stderr, 
        "memtrace: %s is not whole: nor is what was packed of it, and its reports say so\n",
        words::EscapeControls(options.file));
  }
  return 0;
}

}  // namespace

void RegisterPackCommand(CLI::App& app, int* exit_code) {
  CLI::App* pack = app.add_subcommand("pack", "Make a raw trace small");
  auto options = std::make_shared<PackOptions>();
  pack->footer(kPackFooter);
  pack->add_option("FILE", options->file, "The raw trace")->required()->type_name("");
  pack->add_option("-o,--output", options->output, "Where the packed trace goes")
      ->type_name("FILE");
  pack->add_option("--level", options->level, "How hard zstd tries, 1 to 19")
      ->type_name("N")
      ->check(CLI::Range(1, 19))
      ->capture_default_str();
  pack->callback([options, exit_code] { *exit_code = Pack(*options); });
}

}  // namespace memtrace::report
