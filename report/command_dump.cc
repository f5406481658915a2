// memtrace dump

#include <CLI/CLI.hpp>

#include <cmath>
#include <memory>

#include "report/commands.h"
#include "report/dump.h"

namespace memtrace::report {
namespace {

constexpr char kFooter[] = R"(
Each line is TIME THREAD EVENT ADDRESS key=value...; frames of stacks are defined
before they are used, and lines that begin with # are about the trace.

Example:
  memtrace dump app.mtr | grep ' malloc ' | head)";

struct DumpFlags {
  DumpOptions options;
  std::string output;
  double from_s = 0;
  double to_s = -1;
};

uint64_t Nanoseconds(double seconds) {
  const double ns = seconds * 1e9;
  return ns >= 9e18 ? UINT64_MAX : static_cast<uint64_t>(std::llround(ns));
}

}  // namespace

void RegisterDumpCommand(CLI::App& app, int* exit_code) {
  CLI::App* dump = app.add_subcommand("dump", "Print every event in order, one per line");
  auto flags = std::make_shared<DumpFlags>();
  dump->footer(kFooter);
  dump->add_option("file", flags->options.file, "The trace")->required()->type_name("FILE");
  dump->add_option("-o,--output", flags->output, "Where the lines go; standard output if not given")
      ->type_name("FILE");
  dump->add_option("--from", flags->from_s, "Only events from this time on")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  dump->add_option("--to", flags->to_s, "Only events up to this time")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  dump->callback([flags, exit_code] {
    flags->options.range.from_ns = Nanoseconds(flags->from_s);
    if (flags->to_s >= 0) flags->options.range.to_ns = Nanoseconds(flags->to_s);
    *exit_code = ExitCodeOf(WriteTo(
        flags->output, [&](std::ostream& out) { return RunDump(flags->options, out); }));
  });
}

}  // namespace memtrace::report
