// memtrace info

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "report/commands.h"
#include "report/info.h"

namespace memtrace::report {
namespace {

constexpr char kFooter[] = R"(
Example:
  memtrace info app.mtr)";

}  // namespace

void RegisterInfoCommand(CLI::App& app, int* exit_code) {
  CLI::App* info = app.add_subcommand(
      "info", "What was traced, what is missing, what it cost");
  auto options = std::make_shared<InfoOptions>();
  info->footer(kFooter);
  info->add_option("FILE", options->file, "The trace")->required()->type_name("");
  info->callback(
      [options, exit_code] { *exit_code = ExitCodeOf(RunInfo(*options, std::cout)); });
}

}  // namespace memtrace::report
