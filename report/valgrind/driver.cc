#include "report/valgrind/driver.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/base/memory_limit.h"
#include "report/base/scratch_directory.h"
#include "report/cli/exit_status.h"
#include "report/leak/leak_scans.h"
#include "report/render/valgrind_report.h"
#include "report/run/output_name.h"
#include "report/run/run_session.h"
#include "report/valgrind/driver_children.h"
#include "report/valgrind/driver_options.h"
#include "report/valgrind/driver_suppressions.h"
#include "report/valgrind/named_trace.h"
#include "report/valgrind/report_file.h"
#include "report/words/escape.h"
#include "symbolizer/symbol_cache.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::report {
namespace {

using namespace valgrind;  // NOLINT: this file joins its parts

constexpr char kName[] = "memtrace-valgrind";
constexpr char kRootTrace[] = "trace.mtr";

void Say(absl::string_view message) {
  std::fprintf(stderr, "%s: %s\n", kName, words::EscapeControls(message).c_str());
}

int Fail(absl::string_view message) {
  Say(message);
  return kExitFailed;
}

// The program's own first.
std::vector<std::string> TracesIn(const std::string& directory) {
  std::vector<std::string> traces;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".mtr") traces.push_back(entry.path().string());
  }
  std::sort(traces.begin(), traces.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(Basename(a) != kRootTrace, a) < std::pair(Basename(b) != kRootTrace, b);
  });
  return traces;
}

class Driver {
 public:
  explicit Driver(const DriverOptions& options)
      : options_(options),
        log_(options.log_file, options.log_fd),
        xml_(options.xml_file, options.xml_fd) {}

  int Run(const std::vector<std::string>& arguments) {
    signal(SIGPIPE, SIG_IGN);  // of the report's reader; the program gets its own back
    // Now, and not when the program has run for an hour.
    for (ReportFile* file : {&log_, &xml_}) {
      if (absl::Status status = file->Begin(); !status.ok()) return Fail(status.message());
    }
    if (!options_.missed.empty()) {
      Say(absl::StrCat(absl::StrJoin(options_.missed, " "), ": nothing of that is done here"));
    }
    absl::Status status = suppressions_.Load(options_);
    if (!status.ok()) return Fail(status.message());
    arguments_ = arguments;
    const int exit_status = RunAndReport();
    if (exit_status != 0) {
      if (signal_ != 0 && exit_status == 128 + signal_) DieBy(signal_);
      return exit_status;
    }
    if (reported_ == 0) return kExitFailed;  // RunSession() said why
    if (errors_ > 0 && options_.error_exitcode != 0) return options_.error_exitcode;
    return unknown_ ? kExitFailed : 0;
  }

 private:
  static constexpr char kLeakCheck[] = "exit";

  // Returns the exit status of the program.
  int RunAndReport() {
    // Where the traces are until they have been reported.
    const ScratchDirectory scratch(kName);
    if (scratch.path().empty()) return Fail(scratch.error());
    // Where the user wants nothing kept, the processes of this run still share what was found.
    symbolizer_.cache_dir = symbolizer::SymbolCacheDirectory();
    if (symbolizer_.cache_dir.empty()) {
      symbolizer_.cache_dir = absl::StrCat(scratch.path(), "/symbols");
    }
    RunOptions run;
    run.output = absl::StrCat(scratch.path(), "/", kRootTrace);
    run.children = "follow";  // Valgrind's --trace-children is of those that exec alone
    run.quiet = run.passing = true;
    run.free_stacks = true;
    run.command = options_.command;
    if (options_.leak_check != render::ValgrindStyle::LeakCheck::kNo) {
      setenv("MEMTRACE_LEAK_CHECK", kLeakCheck, 1);
    }
    signal(SIGPIPE, SIG_DFL);
    RunOutcome outcome;
    const int exit_status = RunSession(run, &outcome);
    // A process that still runs may have begun by an exec, which does not matter
    // without trace_children.
    unknown_ |= options_.trace_children ? !outcome.missing.empty() : outcome.failed;
    signal_ = outcome.end_signal;
    signal(SIGPIPE, SIG_IGN);
    LimitMemory();

    for (const TraceToReport& trace :
         TracesToReport(TracesIn(scratch.path()), run.output, options_)) {
      Report(trace);
      ++reported_;
    }
    return exit_status;
  }

  void Report(const TraceToReport& one) {
    leak::LeakOptions leaks;
    leaks.heuristics = options_.heuristics;
    const auto trace = NamedTrace::Read(one.file, symbolizer_, leaks);
    if (!trace.ok()) {
      Say(trace.status().message());
      unknown_ = true;
      return;
    }
    const Analysis& analysis = (*trace)->analysis();
    const ProcessInfo& process = analysis.process;
    // After an exec the process is another program; nothing was looked for in the old one. That the
    // command itself became one which is not reported is told, and not of each child that starts a
    // program.
    const bool replaced = process.end == ProcessInfo::End::kExec;
    if (replaced && (!one.is_commands || one.next == TraceToReport::Next::kReported)) return;
    if (process.forked && options_.child_silent_after_fork) return;

    render::LossOptions how;
    how.callers = options_.callers;
    how.resolution = options_.resolution;
    how.below_main = options_.below_main;
    render::LossList losses = render::CollectLosses((*trace)->view(), how);
    std::vector<render::FreeError> free_errors = FreeErrors((*trace)->view(), how);
    suppressions_.Apply((*trace)->view(), &losses, &free_errors);
    render::ValgrindStyle style = Style((*trace)->view());
    style.free_errors = std::move(free_errors);
    if (replaced) {
      style.why_unknown = WhyNotFollowed(one);
      const absl::Status status = WriteWithoutLeaks((*trace)->view(), style);
      if (!status.ok()) Say(status.message());
      unknown_ |= !status.ok() || (options_.trace_children &&
                                   one.next == TraceToReport::Next::kNoTrace);
      return;
    }
    errors_ += CountErrors(losses, style).errors;
    words::StringSink log_text, xml_text;
    absl::Status status =
        options_.xml ? RenderValgrindXml((*trace)->view(), losses, style, xml_text)
                     : RenderValgrindText((*trace)->view(), losses, style, log_text);
    if (status.ok()) {
      status = options_.xml ? xml_.Write(process.pid, xml_text.text())
                            : log_.Write(process.pid, log_text.text());
      if (status.ok()) {
        const bool unknown = options_.leak_check != render::ValgrindStyle::LeakCheck::kNo &&
                             leak::EndWasNotScanned(analysis);
        unknown_ |= unknown;
        if (unknown && options_.xml)
          Say(absl::StrCat(absl::StrJoin(process.command, " "), ": ", leak::kEndWasNotScanned));
        return;
      }
      Say(status.message());
    } else {
      status = WriteWithoutLeaks((*trace)->view(), style);
      if (!status.ok()) Say(status.message());
    }
    unknown_ = true;
  }

  std::string WhyNotFollowed(const TraceToReport& one) const {
    const bool known = one.next == TraceToReport::Next::kLeftOut;
    return absl::StrCat(
        "the program was replaced by an exec of ", known ? one.next_program : "another program",
        !options_.trace_children ? ", which is not followed without --trace-children=yes"
        : known                  ? ", which --trace-children-skip leaves out"
                                 : ", which was not traced");
  }

  // What is known of a process whose memory was not scanned. Never a report that reads as none: an
  // XML file is written where there is an error, the signal that ended the process, or that an exec
  // did, to put into it, and that the leaks are not known is in the log in any case.
  absl::Status WriteWithoutLeaks(const render::ReportView& view,
                                 const render::ValgrindStyle& style) {
    const ProcessInfo& process = view.analysis().process;
    const std::string why = render::WhyLeaksAreUnknown(view, style);
    words::StringSink log_text, xml_text;
    if (options_.xml) {
      render::RenderValgrindXmlWithoutLeaks(view, style, xml_text);
    } else {
      render::RenderValgrindHead(view, style, log_text);
      render::RenderFreeErrors(view, style, log_text);
    }
    const std::string command = absl::StrJoin(process.command, " ");
    const bool asked = options_.leak_check != render::ValgrindStyle::LeakCheck::kNo;
    log_text.Write(words::EscapeControls(absl::StrCat(
        "==", process.pid, "== Memtrace: ",
        asked ? absl::StrCat("the leaks of ", command, " are not known") : command, ": ", why)));
    log_text.Write("\n");
    absl::Status status = log_.Write(process.pid, log_text.text());
    if (!xml_text.text().empty()) status.Update(xml_.Write(process.pid, xml_text.text()));
    return status;
  }

  std::vector<render::FreeError> FreeErrors(const render::ReportView& view,
                                            const render::LossOptions& how) const {
    std::vector<render::FreeError> errors = render::CollectFreeErrors(view, how);
    if (!options_.mismatched_frees) {
      std::erase_if(
          errors, [](const auto& one) { return one.kind == render::FreeError::Kind::kMismatched; });
    }
    return errors;
  }

  render::ValgrindStyle Style(const render::ReportView& view) {
    render::ValgrindStyle style;
    style.leak_check = options_.leak_check;
    style.show = options_.show;
    style.errors = options_.errors;
    style.verbosity = options_.verbosity;
    style.version = MEMTRACE_VERSION;
    style.tool_command = {kName};
    for (const std::string& word : arguments_) {
      if (style.tool_command.size() + options_.command.size() > arguments_.size()) break;
      style.tool_command.push_back(word);
    }
    style.user_comment = options_.user_comment;
    style.suppressions = suppressions_.Used();
    if (options_.gen_suppressions == DriverOptions::GenSuppressions::kAll) {
      style.suppression_for = [this, &view](const render::Loss& loss) {
        return suppressions_.For(view, loss);
      };
      style.suppression_for_free = [this, &view](const render::FreeError& error) {
        return suppressions_.For(view, error);
      };
    }
    if (options_.verbosity > 1 && !options_.ignored.empty()) {
      style.remarks.push_back(
          absl::StrCat("without effect: ", absl::StrJoin(options_.ignored, " ")));
    }
    return style;
  }

  // Dies as the program did, so that whoever started us sees it.
  static void DieBy(int signal) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);  // its own core is the one that is wanted
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
  }

  const DriverOptions options_;
  std::vector<std::string> arguments_;
  ReportFile log_, xml_;
  DriverSuppressions suppressions_;
  symbolizer::Options symbolizer_;
  uint64_t errors_ = 0;
  size_t reported_ = 0;
  int signal_ = 0;
  bool unknown_ = false;  // of a process
};

}  // namespace

bool IsValgrindDriver(absl::string_view argv0) { return Basename(argv0) == kName; }

int RunValgrindDriver(const std::vector<std::string>& arguments) {
  const auto configured = valgrind::ReadConfiguredOptions();
  if (!configured.ok()) return Fail(configured.status().message());
  const absl::StatusOr<DriverOptions> options = ParseDriverOptions(arguments, *configured);
  if (!options.ok()) {
    return Fail(absl::StrCat(options.status().message(), "; see ", kName, " --help"));
  }
  if (options->help) {
    std::fputs(DriverHelp().c_str(), stdout);
    return 0;
  }
  if (options->version) {
    std::printf("memtrace %s\n", MEMTRACE_VERSION);
    return 0;
  }
  return Driver(*options).Run(arguments);
}

}  // namespace memtrace::report
