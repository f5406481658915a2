// memtrace: the command line. Each command is registered by its own file; here
// are only what they share: --version, and one clear line for a wrong word.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/base/memory_limit.h"
#include "report/cli/exit_status.h"
#include "report/cli/options.h"
#include "report/command/command_leaks.h"
#include "report/command/command_report.h"
#include "report/command/commands.h"
#include "report/diff/command_diff.h"
#include "report/gate/check_session.h"
#include "report/gate/command_check.h"
#include "report/import/command_import.h"
#include "report/pages/command_pages.h"
#include "report/rings/command_rings.h"
#include "report/run/run_command.h"
#include "report/trend/command_trend.h"
#include "report/valgrind/command_compare.h"
#include "report/valgrind/driver.h"
#include "report/words/escape.h"

namespace {

using memtrace::report::kExitFailed;

// The command the words were meant for, or the whole program.
const CLI::App& Chosen(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

// Everything that could have been meant by a word at this place.
std::vector<std::string> Candidates(const CLI::App& app, bool flags) {
  std::vector<std::string> names;
  if (flags) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames())
        names.push_back(absl::StrCat("--", name));
    }
  } else {
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
      names.push_back(command->get_name());
    }
  }
  return names;
}

// The word that is told of: an option that the command does not have, before what became of its
// value, and of the words behind --, which are left over by then.
std::string WrongWord(const CLI::App& app, const CLI::App& chosen) {
  if (&chosen != &app) {
    for (const std::string& word : chosen.remaining()) {
      if (absl::StartsWith(word, "-") && word != "--") return word;
    }
  }
  const std::vector<std::string> unknown = app.remaining(true);
  return unknown.empty() ? "" : unknown.front();
}

// One line: what is wrong, what was probably meant, where help is.
int Complain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& chosen = Chosen(app);
  const std::string help =
      &chosen == &app ? "memtrace --help" : absl::StrCat("memtrace ", chosen.get_name(), " --help");
  std::string message = error.what();
  std::string meant;
  const std::string unknown = WrongWord(app, chosen);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !unknown.empty()) {
    const std::string word = unknown.substr(0, unknown.find('='));
    const bool flag = absl::StartsWith(word, "-");
    const bool command = !flag && &chosen == &app;
    message = absl::StrCat(flag ? "unknown option " : command ? "unknown command " : "unexpected ",
                           memtrace::report::words::EscapeControls(word));
    if (flag || command) {
      const std::vector<std::string> near =
          memtrace::report::render::Suggest(word, Candidates(chosen, flag));
      if (!near.empty()) meant = absl::StrCat(" (did you mean ", absl::StrJoin(near, " or "), "?)");
    }
  }
  std::fprintf(stderr, "memtrace: %s%s; see %s\n",
               memtrace::report::words::EscapeControls(message).c_str(), meant.c_str(),
               help.c_str());
  return kExitFailed;
}

constexpr char kEmptyValue[] = "the value is empty; leave the option out for its default";

// "--match=", which CLI11 takes for an option whose value is the next word. Empty: there is none.
// What a program of `run` is given is its own.
std::string OptionWithoutValue(int argc, char** argv) {
  const bool runs = argc > 1 && strcmp(argv[1], "run") == 0;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--" || (runs && !absl::StartsWith(word, "-"))) break;
    if (absl::StartsWith(word, "--") && word.find('=') == word.size() - 1)
      return word.substr(0, word.size() - 1);
  }
  return "";
}

// A variable of a script that is not set would leave an option out, in silence.
void RefuseEmptyValues(CLI::App& app) {
  const auto refuse = [](const std::string& value) {
    return value.empty() ? std::string(kEmptyValue) : std::string();
  };
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options()) {
      if (!option->get_lnames().empty() && option->get_items_expected_max() > 0)
        option->check(refuse);
    }
  }
}

// Writes out what may still be in a buffer; returns the exit code, or another one if that fails.
int Flushed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  if (exit_code == kExitFailed) return exit_code;  // which said why
  std::fprintf(stderr, "memtrace: cannot write standard output: %s\n", std::strerror(errno));
  return kExitFailed;
}

// A `memtrace check` that does not get as far as to read anything leaves no verdict of another run.
void WithoutVerdict(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "check") == 0) {
    memtrace::report::RemoveEarlierVerdicts({argv + 2, argv + argc});
  }
}

// Called when all that was begun has been taken back: no output is half written.
int OutOfMemory() {
  const uint64_t limit = memtrace::report::MemoryLimit();
  const std::string bytes =
      limit == UINT64_MAX ? "there is" : absl::StrCat("the limit, ", limit >> 20, " MiB");
  std::fprintf(stderr,
               "memtrace: this needs more memory than %s (ulimit -v, the cgroup); fewer traces at "
               "once, or of a "
               "report a part of the time (--from, --to), may need less\n",
               bytes.c_str());
  return kExitFailed;
}

// What `run` returns; where it needs more memory than there is, it says so, whoever runs.
template <typename Run>
int WithinMemory(Run run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::length_error&) {  // more than any memory
    return OutOfMemory();
  }
}

// Where one of the three is closed, the next file that is opened would be it: what is read, or what
// -o names by /proc/self/fd/1. To write or read there fails as before, and a program that is
// started finds it closed.
void HoldStandardDescriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd) return;
  }
}

// Without what CLI11 adds in words of its own: what is required the usage shows, which options do
// not go together is told by who gives them both, and which values an option takes its description
// says.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string words = CLI::Formatter::make_option_opts(option);
    for (const char* added : {" REQUIRED", " Excludes:"}) {
      words = words.substr(0, words.find(added));
    }
    // "N:INT in [1 - 19]": what the value is called, and then how its checks call it.
    const std::string value = option->get_type_name();
    const size_t called = std::min(value.find(':'), value.size());
    const size_t place = words.find(value);
    return place == words.npos ? words : words.erase(place + called, value.size() - called);
  }
};

int RunCommandLine(int argc, char** argv) {
  CLI::App app("Records every heap allocation of a program, with its exact stack, and\n"
               "reports where the memory went.",
               "memtrace");
  app.set_version_flag("--version", "memtrace " MEMTRACE_VERSION);
  app.set_help_flag("-h,--help", "This text; behind a command, about that");
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.footer(
      "Examples:\n"
      "  memtrace run -o app.mtr -- ./app --its-own-option\n"
      "  memtrace report app.mtr\n"
      "  memtrace report app.mtr --format json -o report.json");

  int exit_code = 0;
  memtrace::report::RegisterRunCommand(app, &exit_code);
  memtrace::report::RegisterReportCommand(app, &exit_code);
  memtrace::report::RegisterRingsCommand(app, &exit_code);
  memtrace::report::RegisterDiffCommand(app, &exit_code);
  memtrace::report::RegisterTrendCommand(app, &exit_code);
  memtrace::report::RegisterPagesCommand(app, &exit_code);
  memtrace::report::RegisterCheckCommand(app, &exit_code);
  memtrace::report::RegisterLeaksCommand(app, &exit_code);
  memtrace::report::RegisterDumpCommand(app, &exit_code);
  memtrace::report::RegisterInfoCommand(app, &exit_code);
  memtrace::report::RegisterPackCommand(app, &exit_code);
  memtrace::report::RegisterCompareCommand(app, &exit_code);
  memtrace::report::RegisterImportCommand(app, &exit_code);
  RefuseEmptyValues(app);
  if (const std::string option = OptionWithoutValue(argc, argv); !option.empty()) {
    std::fprintf(stderr, "memtrace: %s: %s; see memtrace %s --help\n",
                 memtrace::report::words::EscapeControls(option).c_str(), kEmptyValue,
                 memtrace::report::words::EscapeControls(argv[1]).c_str());
    WithoutVerdict(argc, argv);
    return kExitFailed;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);  // of the command, if one was given
    return Flushed(0);
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return Flushed(0);
  } catch (const CLI::ParseError& error) {
    const int failed = Complain(app, error);
    WithoutVerdict(argc, argv);
    return failed;
  }
  if (app.get_subcommands().empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kExitFailed;
  }
  return Flushed(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  HoldStandardDescriptors();
  return WithinMemory([argc, argv] {
    return argc > 0 && memtrace::report::IsValgrindDriver(argv[0])
               ? Flushed(memtrace::report::RunValgrindDriver({argv + 1, argv + argc}))
               : RunCommandLine(argc, argv);
  });
}
