#include "report/gate/command_check.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "report/cli/common_options.h"
#include "report/gate/check_session.h"

namespace memtrace::report {
namespace {

constexpr char kFooter[] =
    "Exit status: 0 clean; 1 a leak or a limit is not accepted; 2 no usable evidence.\n"
    "With --run that of the program, unless it is 0.\n"
    "\n"
    "Examples:\n"
    "  memtrace check traces/ --suppressions app.supp --baseline leaks.baseline\n"
    "  memtrace check --run --max-peak 64M -o junit=leaks.xml -- ./unit_test\n"
    "  memtrace check traces/ --baseline leaks.baseline --update-baseline";

}  // namespace

void RegisterCheckCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* check = app.add_subcommand("check", "A gate for tests: fail on leaks and limits");
  check->footer(kFooter);
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* text,
                        const char* type) {
    check->add_option(name, values, text)
        ->type_name(type)
        ->expected(1)
        ->allow_extra_args(false)  // or it would take the FILEs behind it as well
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  check->add_option("FILE", flags->words, "Traces, or directories of them; with --run\na program")
      ->type_name("");
  check->add_flag("--run", flags->run, "Run the program behind -- and check its traces");
  check->add_option("--traces", flags->traces, "With --run: keep the traces in this directory")
      ->type_name("D");
  list("--programs", flags->programs,
       "Judge only these, as app,test_*, not what else\nran; repeatable", "GLOBS");
  check->add_option("--fail-on", flags->fail_on,
                    "Kinds that fail: definite (default), indirect,\n"
                    "possible, reachable, unfreed; all, none")
      ->type_name("KINDS");
  list("--suppressions", flags->suppressions,
       "Leaks to pass over, as Valgrind or LeakSanitizer\n"
       "write them; repeatable", "F");
  check->add_option("--default-suppressions", flags->default_suppressions,
                    "What the C and C++ runtime keeps: yes\n(default), no")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"yes", "no"}));
  check->add_option("--gen-suppressions", flags->gen_suppressions,
                    "Write suppressions for what fails; - is standard\n"
                    "output")
      ->type_name("F");
  check
      ->add_option("--baseline", flags->baseline,
                   "Leaks that are known: fail on new and grown ones")
      ->type_name("F");
  check->add_flag("--update-baseline", flags->update_baseline,
                  "Make the baseline what is found now");
  check->add_option("--tolerance", flags->tolerance,
                    "By how much a known leak may grow: 10%, 4K")
      ->type_name("N");
  list("--max-leaked", flags->max_leaked, "Bytes that a process may leak; repeatable",
       "[PROG=]BYTES");
  list("--max-peak", flags->max_peak, "Bytes that it may have live at once; repeatable",
       "[PROG=]BYTES");
  list("--max-allocations", flags->max_allocations, "How often it may allocate; repeatable",
       "[PROG=]N");
  list("--max-growth", flags->max_growth,
       "Bytes by which it may grow between two phases;\nrepeatable", "[PROG=]A..B=BYTES");
  list("--max-invalid-frees", flags->max_invalid_frees,
       "Double frees, and frees inside of blocks, that it\nmay have; 0; repeatable", "[PROG=]N");
  list("--max-mismatched-frees", flags->max_mismatched_frees,
       "Blocks of new that free ends, and the like; 0;\nrepeatable", "[PROG=]N");
  check->add_option("--missing-evidence", flags->missing_evidence,
                    "Traces that prove nothing: fail (default), or are\n"
                    "reported only")
      ->type_name("HOW")
      ->check(CLI::IsMember({"fail", "report"}));
  check->add_option("-f,--format", flags->format, "text (default), json, junit, sarif, gitlab")
      ->type_name("F");
  list("-o,--output", flags->outputs, "Write here; junit=FILE has its format; repeatable",
       "[F=]OUT");
  check->add_option("--source-root", flags->source_root,
                    "Where the sources were: places are below here")
      ->type_name("D");
  check->add_option("--top", flags->top, "Leaks that the text shows; 10")->type_name("N")
      ->check(WholeNumber, "");
  check->add_flag("--full", flags->full, "Every leak, every frame");
  check->add_flag("-q,--quiet", flags->quiet, "Only the verdict, on one line");
  AddNameOptions(check, {&flags->debug_dirs, &flags->sysroot});
  check->callback([flags, exit_code] { *exit_code = CheckSession(*flags); });
}

}  // namespace memtrace::report
