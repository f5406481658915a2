#include "report/run/run_command.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "report/base/byte_size.h"
#include "report/cli/common_options.h"
#include "report/run/run_session.h"

namespace memtrace::report {
namespace {

constexpr char kFooter[] = R"(
Example:
  memtrace run -o sort.mtr -- sort -n numbers.txt
  memtrace report sort.mtr

Standard streams, arguments and exit status are the program's own. An existing
FILE is replaced when the program has ended. Children are traced into files of
their own beside it: FILE with .PROGRAM.PID before the extension.)";

// A size, which is passed on as the library takes it: in digits.
const CLI::Validator kBytes(
    [](std::string& text) -> std::string {
      const auto bytes = ParseByteSize(text);
      if (!bytes.ok()) return std::string(bytes.status().message());
      text = absl::StrCat(*bytes);
      return "";
    },
    "");

// Of what kBytes has made of it. The greatest sample distance that the library takes;
// preload/sampler.h says why.
const CLI::Validator kAtMostOneTebibyte(
    [](std::string& text) -> std::string {
      return std::stoull(text) <= uint64_t{1} << 40 ? "" : "is more than 1T";
    },
    "");

const CLI::Validator kInterval(
    [](std::string& text) -> std::string {
      absl::Duration interval;
      if (!absl::ParseDuration(text, &interval)) {
        return "takes a time such as 20ms or 1s, not '" + text + "'";
      }
      const bool fits = interval >= absl::Milliseconds(1) && interval <= absl::Hours(1);
      return fits ? "" : "is not between 1ms and 1h: '" + text + "'";
    },
    "");

}  // namespace

void RegisterRunCommand(CLI::App& app, int* exit_code) {
  CLI::App* run = app.add_subcommand("run", "Run a program and trace its memory");
  auto options = std::make_shared<RunOptions>();
  run->footer(kFooter);
  run->positionals_at_end();  // what follows PROGRAM belongs to it, also without the --
  run->add_option("-o,--output", options->output,
                  "Where the trace goes; %e is the program, %p its\n"
                  "pid, %t its start time")
      ->type_name("FILE")
      ->default_str("memtrace.%e.%p.mtr");
  run->add_option("--stacks", options->stacks, "Record the stack of every allocation: all or off")
      ->type_name("MODE")
      ->check(CLI::IsMember({"all", "off"}));
  run->add_flag("--free-stacks", options->free_stacks,
                "Record the stack of every free too: the report\n"
                "then has the pairs of new and free, malloc and\n"
                "delete, that do not match");
  run->add_option("--children", options->children,
                  "Trace the processes that the program starts:\n"
                  "follow or off")
      ->type_name("MODE")
      ->check(CLI::IsMember({"follow", "off"}));
  run->add_option("--leak-check", options->leak_check,
                  "When memory is scanned for leaks: after the exit\n"
                  "handlers, before them, at both times or never;\n"
                  "exit, exit-early, both or off")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"exit", "exit-early", "both", "off"}));
  run->add_option("--faults", options->faults,
                  "How page faults are looked for: by events, of\n"
                  "user code alone, by snapshots, or not; auto, user,\n"
                  "snapshots or off")
      ->type_name("HOW")
      ->default_str("auto")
      ->check(CLI::IsMember({"auto", "user", "snapshots", "off"}));
  run->add_option("--sample-bytes", options->sample_bytes,
                  "Record one allocation in so many bytes, for a\n"
                  "report of estimates; 0 records all")
      ->type_name("BYTES")
      ->transform(kBytes)
      ->check(kAtMostOneTebibyte);
  run->add_option("--max-bytes", options->max_bytes,
                  "Stop recording when the raw trace of a process is\n"
                  "as long; 0 is no limit")
      ->type_name("BYTES")
      ->transform(kBytes);
  run->add_option("--keep", options->keep,
                  "What a trace keeps when it is as long: its oldest\n"
                  "events, or its newest; oldest or newest")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"oldest", "newest"}));
  run->add_option("--cross-check", options->cross_check,
                  "Unwind every N-th stack with libunwind too and\n"
                  "compare; 0 does not")
      ->type_name("N")
      ->check(WholeNumber, "");
  run->add_option("--sample-interval", options->sample_interval,
                  "How often memory is sampled from outside, such as\n"
                  "20ms or 1s; longer in a long run")
      ->type_name("TIME")
      ->default_str("100ms")
      ->check(kInterval);
  run->add_flag("--no-samples", options->no_samples, "Do not sample memory from outside");
  run->add_option("--library", options->library, "The libmemtrace.so to preload")
      ->type_name("PATH");
  run->add_option("--finish", options->finish,
                  "Pack what an interrupted run, or a process that\n"
                  "outlived it, left here")
      ->type_name("DIRECTORY");
  run->add_flag("-q,--quiet", options->quiet, "No line at the end, unless something went wrong");
  run->add_flag("-v,--verbose", options->verbose, "Say what is done");
  // CLI11 takes an argument like "[a,b]" apart. A validator sees each word as it was
  // given, first while arguments are read, and then all results once more.
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::Option* program =
      run->add_option("PROGRAM", options->command, "The program to run, and its arguments")
          ->expected(-1)
          ->type_name("")
          ->check(CLI::Validator([words](std::string& word) -> std::string {
            words->push_back(word);
            return "";
          }, ""));
  run->validate_positionals();
  run->callback([options, words, program, exit_code] {
    const size_t results = program->results().size();
    if (words->size() > results) {
      words->resize(words->size() - results);
      options->command = *words;
    }
    *exit_code = RunSession(*options);
  });
}

}  // namespace memtrace::report
