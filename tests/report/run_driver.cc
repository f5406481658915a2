// `memtrace run` alone, for as long as the tests do not have the whole memtrace.

#include <CLI/CLI.hpp>

#include "report/run/run_command.h"

int main(int argc, char** argv) {
  CLI::App app{"memtrace run"};
  int exit_code = 0;
  app.require_subcommand(1);
  memtrace::report::RegisterRunCommand(app, &exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
