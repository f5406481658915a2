#include "report/gate/check_session.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "report/base/memory_limit.h"
#include "report/base/path.h"
#include "report/base/scratch_directory.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/gate/baseline.h"
#include "report/gate/baseline_file.h"
#include "report/gate/baseline_of.h"
#include "report/gate/check_options.h"
#include "report/gate/earlier_verdicts.h"
#include "report/gate/evidence.h"
#include "report/gate/formats.h"
#include "report/gate/gate_input.h"
#include "report/gate/generated_suppressions.h"
#include "report/gate/judge.h"
#include "report/gate/source_root.h"
#include "report/names/site_symbols.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/run/run_session.h"
#include "report/suppress/suppressions.h"
#include "report/tree/trace_set.h"
#include "report/words/escape.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using namespace gate;  // NOLINT: this file joins the parts

std::vector<std::string> PathsOf(const std::vector<OutputSpec>& outputs) {
  std::vector<std::string> paths;
  for (const OutputSpec& output : outputs) paths.push_back(output.path);
  return paths;
}

void RemoveAndTell(const std::vector<std::string>& paths) {
  for (const std::string& path : RemoveVerdicts(paths)) {
    std::fprintf(stderr, "memtrace: %s was of an earlier run, and is removed\n",
                 words::EscapeControls(path).c_str());
  }
}

// Where there is no verdict, that of an earlier run must not be taken for one.
int FailWithout(const std::vector<OutputSpec>& outputs, const absl::Status& status) {
  const int exit_code = ExitCodeOf(status);
  RemoveAndTell(PathsOf(outputs));
  return exit_code;
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  auto out = render::Output::Open(path);
  if (!out.ok()) return out.status();
  out->Write(text);
  return out->Commit();
}

absl::Status WriteOutput(const OutputSpec& output, bool quiet, GateReport& report) {
  auto out = render::Output::Open(output.path);
  if (!out.ok()) return out.status();
  report.style = render::StyleFor(out->fd(), render::ColorMode::kNever, 0);
  if (output.format == GateFormat::kText && quiet) {
    out->Write(absl::StrCat("memtrace check: ", VerdictLine(report), "\n"));
  } else {
    out->Write(RenderGate(output.format, report));
  }
  return out->Commit();
}

// One that cannot be written takes nothing from the others. Returns the exit status of that.
int WriteOutputs(const CheckFlags& flags, const CheckOptions& options, GateReport& report) {
  int exit_code = 0;
  for (const OutputSpec& output : options.outputs) {
    exit_code = std::max(exit_code, ExitCodeOf(WriteOutput(output, flags.quiet, report)));
  }
  if (!flags.gen_suppressions.empty()) {
    const absl::Status status = WriteFile(flags.gen_suppressions, GeneratedSuppressions(report));
    exit_code = std::max(exit_code, ExitCodeOf(status));
  }
  return exit_code;
}

// Programs that may not have come to all that they leak on their usual way: a process of theirs
// failed, or nothing is known of it. `all`: each of them.
std::set<std::string> UnfinishedPrograms(const GateInput& input, bool all) {
  std::set<std::string> programs;
  const bool unknown = !input.unreadable.empty();
  for (const GateProcess& process : input.processes) {
    if (all || unknown || process.failed || !process.no_evidence.empty() ||
        !process.not_seen.empty() || !process.untraced_children.empty()) {
      programs.insert(process.program);
    }
  }
  return programs;
}

// What helps where evidence is missing that an update needs; it follows the reason.
std::string HowToUpdate(const CheckFlags& flags, const GateResult& result) {
  return absl::StrCat(
      result.usable == 0 ? "" : "; --missing-evidence report updates it by what was looked at",
      flags.run && flags.traces.empty() ? "; --traces D keeps the traces, to look why" : "");
}

// Makes the baseline what `result` found, and `result` the verdict by that. Where it may not be, the
// file is left alone, and so is the verdict; the reason is returned.
absl::Status UpdateBaseline(const CheckFlags& flags, const GateInput& input,
                            const render::ReportView& names, CheckOptions& options,
                            GateResult* result, GateReport* report) {
  // Of what was not seen nothing is known: a baseline without it would be wrong tomorrow.
  if (MissingEvidenceFails(*result)) {
    return absl::FailedPreconditionError(
        absl::StrCat(MissingEvidenceSentence(*result), HowToUpdate(flags, *result)));
  }
  if (absl::Status named = MayBecomeBaseline(*result, names); !named.ok()) return named;
  const std::set<std::string> programs(result->programs.begin(), result->programs.end());
  std::set<std::string> part_seen = report->unfinished;
  part_seen.insert(result->nameless.begin(), result->nameless.end());
  std::set<LostLeak> suppressed;
  for (const auto& [leak, by] : result->suppressed_leaks) suppressed.insert(leak);
  BaselineChanges changes;
  // Other runs may have changed the file while this one's program ran.
  auto updated = UpdateBaselineFile(flags.baseline, [&](const Baseline& now) {
    return now.Update(BaselineOf(*result, names), programs, options.policy.fail_on, part_seen,
                      &changes, suppressed);
  });
  if (!updated.ok()) return updated.status();
  options.baseline = *std::move(updated);
  report->baseline_changes = ChangesText(changes);
  options.suppressions.ForgetMatches();
  *result = Judge(input, names, options.policy, options.baseline, &options.suppressions);
  return absl::OkStatus();
}

// `program_failed`: of --run.
absl::StatusOr<int> Check(const CheckFlags& flags, const Evidence& evidence, bool program_failed,
                          CheckOptions& options) {
  LimitMemory();
  for (const TraceSet::File& file : evidence.set.files) {
    absl::Status status = RefuseToReplace(file.path, flags.gen_suppressions);
    for (const OutputSpec& output : options.outputs) {
      status.Update(RefuseToReplace(file.path, output.path));
    }
    if (!status.ok()) {
      options.outputs.clear();
      return status;
    }
  }
  RemoveVerdicts(PathsOf(options.outputs));  // whoever kills this leaves none
  symbolizer::Options symbolizer_options;
  symbolizer_options.debug_dirs.insert(symbolizer_options.debug_dirs.begin(),
                                       flags.debug_dirs.begin(), flags.debug_dirs.end());
  symbolizer_options.sysroot = flags.sysroot;
  symbolizer_options.cache_dir = symbolizer::SymbolCacheDirectory();
  symbolizer::SymbolizerProcess symbolizer(symbolizer_options);
  symbolizer.StartForkServer();
  render::Progress progress;
  TreeAnalysis tree;
  GateInput input =
      ReadTraces(evidence.set, options.policy, ModuleNamesBy(&symbolizer),
                 [&](double share) { progress.Report("reading", share); }, &tree);
  for (const RunOutcome::Missing& one : evidence.missing) {
    if (one.pid != 0) input.RunsOn(one.pid);
    if (one.program.empty() || options.policy.Judges(one.program) ||
        (!one.was.empty() && options.policy.Judges(one.was))) {
      input.unreadable.push_back({"", one.why});
    } else {
      input.AddOther(one.program);
    }
  }
  if (flags.run && flags.traces.empty()) {
    // They are gone when this is read.
    for (GateProcess& process : input.processes)
      process.file = std::string(FileNameOf(process.file));
    for (GateInput::Unreadable& one : input.unreadable)
      one.file = std::string(FileNameOf(one.file));
  }
  Analysis files = tree.sites.files();
  // What was called to end a block is looked up of these.
  for (const ProcessEnds& one : input.ends) {
    files.block_ends.push_back(one.ends);
    files.frees_with_stack += one.ends.by == BlockEnds::By::kFree && one.ends.to;
  }
  const SiteSymbols symbols(
      files, tree.sites.stacks(),
      SymbolizeBy(&symbolizer),
      [&](double share) { progress.Report("symbolizing", share); }, input.Stacks());
  const auto names = render::ReportView::Create(files, symbols, "");
  if (!names.ok()) return names.status();
  progress.Clear();

  GateResult result =
      Judge(input, *names, options.policy, options.baseline, &options.suppressions);
  GateReport report;
  report.unfinished = UnfinishedPrograms(input, program_failed);
  int not_updated = 0;
  if (flags.update_baseline) {
    const absl::Status updated = UpdateBaseline(flags, input, *names, options, &result, &report);
    if (!updated.ok()) {
      struct stat file;
      const bool is_there = stat(flags.baseline.c_str(), &file) == 0;
      report.baseline_changes =
          absl::StrCat(is_there ? "as it was: " : "not written: ", updated.message());
      not_updated = ExitCodeOf(absl::Status(
          updated.code(), absl::StrCat(flags.baseline, is_there ? " is " : " was ",
                                       report.baseline_changes)));
    }
  }
  report.result = &result;
  report.names = &*names;
  report.suppressions = &options.suppressions;
  report.baseline = flags.baseline;
  report.source_roots = SourceRoots(flags.source_root);
  const bool has_places = absl::c_any_of(options.outputs, [](const OutputSpec& output) {
    return output.format == GateFormat::kSarif || output.format == GateFormat::kGitlab;
  });
  if (const std::string why = WhyNothingIsBelow(report, flags.source_root);
      !why.empty() && (has_places || !flags.source_root.empty())) {
    std::fprintf(stderr, "memtrace: %s\n", why.c_str());
  }
  report.full = flags.full;
  if (flags.top.has_value()) report.top = *flags.top;
  const int undone = std::max(not_updated, WriteOutputs(flags, options, report));
  return undone != 0 ? undone : result.exit_code();
}

// ctest hands no option to the tests that memtrace_add_leak_test made, but its environment.
bool EnvironmentAsksForUpdate() {
  const char* variable = std::getenv("MEMTRACE_UPDATE_BASELINE");
  const std::string value = variable == nullptr ? "" : variable;
  if (value == "1" || value == "on") return true;
  if (!value.empty() && value != "0" && value != "off") {
    std::fprintf(stderr,
                 "memtrace: MEMTRACE_UPDATE_BASELINE=%s is ignored: it takes 1 or on, 0 or off\n",
                 words::EscapeControls(value).c_str());
  }
  return false;
}

// The program's own failure is what counts; the gate's verdict is printed all the same.
int RunAndCheck(const CheckFlags& flags, CheckOptions& options) {
  std::optional<ScratchDirectory> scratch;
  std::string directory = flags.traces;
  if (directory.empty()) {
    directory = scratch.emplace("memtrace-check").path();
    if (directory.empty()) {
      return FailWithout(options.outputs, absl::UnavailableError(scratch->error()));
    }
  } else if (mkdir(directory.c_str(), 0777) != 0) {
    const int error = errno;
    if (!IsDirectory(directory)) {
      return FailWithout(
          options.outputs,
          absl::UnavailableError(absl::StrCat(
              "--traces: ", directory, ": ", strerror(error == EEXIST ? ENOTDIR : error),
              error == EEXIST ? ": it has to be a directory" : ": the directory cannot be made")));
    }
  }
  RunOptions run;
  run.output = absl::StrCat(directory, "/%e.%p.mtr");
  run.command = flags.words;
  run.children = "follow";  // whatever the environment says: what was not looked at is no proof
  run.quiet = true;
  run.passing = scratch.has_value();
  // A test that takes too long is killed, and this with it: no word can be said then.
  RemoveVerdicts(PathsOf(options.outputs));
  RunOutcome outcome;
  const int status = RunSession(run, &outcome);
  absl::StatusOr<int> verdict = Check(
      flags, EvidenceOfRun(directory, !scratch.has_value(), outcome), status != 0, options);
  const int gate = verdict.ok() ? *verdict : FailWithout(options.outputs, verdict.status());
  if (status == 0) return gate;
  std::fprintf(stderr, "memtrace: exit status %d %s; the gate's alone would be %d\n", status,
               outcome.is_the_programs ? "is the program's"
               : outcome.started       ? "is that of a program that was not traced"
                                       : "is that of a program that was not started",
               gate);
  return status;
}

}  // namespace

void RemoveEarlierVerdicts(const std::vector<std::string>& words) {
  RemoveAndTell(OutputsAmong(words));
}

int CheckSession(const CheckFlags& given) {
  CheckFlags flags = given;
  // A whole ctest has it in its environment, and those of its tests that have no baseline, too.
  flags.update_baseline |= !flags.baseline.empty() && EnvironmentAsksForUpdate();
  CheckOptions options;
  if (const absl::Status status = ParseCheckFlags(flags, &options); !status.ok()) {
    return FailWithout(options.outputs, status);
  }
  if (flags.run) return RunAndCheck(flags, options);
  const absl::StatusOr<int> verdict =
      Check(flags, EvidenceOf(flags.words), /*program_failed=*/false, options);
  return verdict.ok() ? *verdict : FailWithout(options.outputs, verdict.status());
}

}  // namespace memtrace::report
