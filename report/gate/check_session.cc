#include "report/gate/check_session.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "report/commands.h"
#include "report/gate/baseline.h"
#include "report/gate/baseline_of.h"
#include "report/gate/formats.h"
#include "report/gate/gate_input.h"
#include "report/gate/judge.h"
#include "report/gate/memcheck_stack.h"
#include "report/gate/policy.h"
#include "report/gate/source_root.h"
#include "report/gate/suppressions.h"
#include "report/gate/text_file.h"
#include "report/leak_kinds.h"
#include "report/memory_limit.h"
#include "report/render/escape.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/run/run_session.h"
#include "report/scratch_directory.h"
#include "report/site_symbols.h"
#include "report/tree/trace_set.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using namespace gate;  // NOLINT: this file joins the parts

std::string Today() {
  const time_t now = time(nullptr);
  tm parts = {};
  gmtime_r(&now, &parts);
  return absl::StrFormat("%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

struct OutputSpec {
  GateFormat format = GateFormat::kText;
  std::string path;  // empty: standard output
};

// All that the words say, before anything is run or read: a mistake must not cost a night.
struct CheckOptions {
  GatePolicy policy;
  Suppressions suppressions;
  Baseline baseline;
  std::vector<OutputSpec> outputs;
};

template <typename T, typename Parse>
absl::Status ParseAll(const std::vector<std::string>& texts, Parse parse, std::vector<T>* out) {
  for (const std::string& text : texts) {
    auto value = parse(text);
    if (!value.ok()) return value.status();
    out->push_back(*std::move(value));
  }
  return absl::OkStatus();
}

absl::Status ParsePolicy(const CheckFlags& flags, GatePolicy* policy) {
  const auto kinds = ParseKinds(flags.fail_on);
  if (!kinds.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--fail-on: ", kinds.status().message()));
  }
  policy->fail_on = *kinds;
  policy->has_baseline = !flags.baseline.empty();
  policy->missing_evidence_fails = flags.missing_evidence != "report";
  policy->today = Today();
  const auto tolerance = ParseTolerance(flags.tolerance);
  if (!tolerance.ok()) return tolerance.status();
  if (flags.tolerance != "0" && flags.baseline.empty()) {
    return absl::InvalidArgumentError("--tolerance: is of the leaks that --baseline knows");
  }
  policy->tolerance = *tolerance;
  const auto limit = [](absl::string_view option, bool counts) {
    return [option, counts](const std::string& text) { return ParseLimit(option, text, counts); };
  };
  absl::Status status = ParseAll(flags.max_leaked, limit("--max-leaked", false), &policy->max_leaked);
  status.Update(ParseAll(flags.max_peak, limit("--max-peak", false), &policy->max_peak));
  status.Update(ParseAll(flags.max_allocations, limit("--max-allocations", true),
                         &policy->max_allocations));
  // What is said of all programs takes the place of none.
  const auto frees = [&](const std::vector<std::string>& texts, absl::string_view option, std::vector<Limit>* limits) {
    std::vector<Limit> given;
    status.Update(ParseAll(texts, limit(option, true), &given));
    if (std::ranges::any_of(given, [](const Limit& one) { return one.program.empty(); })) limits->clear();
    limits->insert(limits->end(), given.begin(), given.end());
  };
  frees(flags.max_invalid_frees, "--max-invalid-frees", &policy->max_invalid_frees);
  frees(flags.max_mismatched_frees, "--max-mismatched-frees", &policy->max_mismatched_frees);
  status.Update(ParseAll(flags.max_growth, [](const std::string& text) { return ParseGrowth(text); },
                         &policy->max_growth));
  return status;
}

// That it cannot be written must not show when the night is over.
absl::Status CheckWritable(absl::string_view option, const std::string& path) {
  if (path.empty() || path == "-") return absl::OkStatus();
  struct stat st;
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": ", path, " is a directory"));
    }
    if (!S_ISREG(st.st_mode)) return absl::OkStatus();  // a device or pipe, which is not replaced
  }
  const size_t slash = path.rfind('/');
  const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
  if (access(directory.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(option, ": ", path, ": ", strerror(errno)));
}

absl::Status ParseOutputs(const CheckFlags& flags, std::vector<OutputSpec>* outputs) {
  GateFormat format = GateFormat::kText;
  if (!flags.format.empty()) {
    const auto given = ParseGateFormat(flags.format);
    if (!given.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--format: ", given.status().message()));
    }
    format = *given;
  }
  bool plain = false;  // is --format taken up by a file?
  for (const std::string& text : flags.outputs) {
    const size_t equals = text.find('=');
    // A file that has a = in its name is meant as it is, unless what is before it looks like a format.
    const auto named = equals == text.npos ? absl::StatusOr<GateFormat>(absl::NotFoundError(""))
                                           : ParseGateFormat(text.substr(0, equals));
    if (!named.ok() && equals != text.npos &&
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == equals) {
      return absl::InvalidArgumentError(absl::StrCat("--output: ", named.status().message(),
                                                     "; for a file of that name write ./", text));
    }
    OutputSpec output{named.ok() ? *named : format,
                      named.ok() ? text.substr(equals + 1) : text};
    plain |= !named.ok();
    if (output.path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--output: \"", text, "\" names no file"));
    }
    if (output.path == "-") output.path.clear();
    const absl::Status writable = CheckWritable("--output", output.path);
    if (!writable.ok()) return writable;
    outputs->push_back(std::move(output));
  }
  const bool to_stdout = std::any_of(outputs->begin(), outputs->end(),
                                     [](const OutputSpec& one) { return one.path.empty(); });
  // The log of a build wants the verdict, whatever else is written.
  if (!to_stdout) outputs->push_back({plain ? GateFormat::kText : format, ""});
  return absl::OkStatus();
}

// Each file is written once, and none of them is one that is read.
absl::Status CheckDistinct(const CheckFlags& flags, const std::vector<OutputSpec>& outputs) {
  std::vector<std::string> written;
  for (const OutputSpec& output : outputs) written.push_back(output.path);
  written.push_back(flags.gen_suppressions);
  // Whatever reads a document there would find two; a person may read suppressions behind the text.
  size_t to_stdout = flags.gen_suppressions == "-" ? 1 : 0;
  bool document = false;
  for (const OutputSpec& output : outputs) {
    if (!output.path.empty()) continue;
    ++to_stdout;
    document |= output.format != GateFormat::kText;
  }
  if (to_stdout > 1 && document) {
    return absl::InvalidArgumentError("standard output would be written twice");
  }
  std::erase(written, "");
  std::erase(written, "-");
  std::set<std::filesystem::path> names;
  for (const std::string& path : written) {
    absl::Status status = RefuseToReplace(flags.baseline, path, "the baseline that is read");
    for (const std::string& file : flags.suppressions) {
      status.Update(RefuseToReplace(file, path, "a file of suppressions that is read"));
    }
    if (!status.ok()) return status;
    std::error_code ignored;
    if (!names.insert(std::filesystem::absolute(path, ignored).lexically_normal()).second) {
      return absl::InvalidArgumentError(absl::StrCat(path, " would be written twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseFlags(const CheckFlags& flags, CheckOptions* parsed) {
  CheckOptions& options = *parsed;
  absl::Status status = ParsePolicy(flags, &options.policy);
  status.Update(ParseOutputs(flags, &options.outputs));
  if (const absl::Status distinct = CheckDistinct(flags, options.outputs); !distinct.ok()) {
    options.outputs.clear();  // nothing is to be written there
    return distinct;
  }
  status.Update(CheckWritable("--gen-suppressions", flags.gen_suppressions));
  if (flags.update_baseline) status.Update(CheckWritable("--baseline", flags.baseline));
  if (!status.ok()) return status;
  for (const std::string& file : flags.suppressions) {
    status = options.suppressions.AddFile(file);
    if (!status.ok()) return status;
  }
  // Last: what the user's own match is counted there.
  if (flags.default_suppressions != "no") options.suppressions.AddBuiltIn();
  if (flags.update_baseline && flags.baseline.empty()) {
    return absl::InvalidArgumentError("--update-baseline: --baseline says which");
  }
  if (!flags.baseline.empty()) {
    const auto text = ReadTextFile(flags.baseline);
    if (!text.ok() && !(absl::IsNotFound(text.status()) && flags.update_baseline)) {
      return absl::IsNotFound(text.status())
                 ? absl::NotFoundError(absl::StrCat(text.status().message(), "; --update-baseline makes it"))
                 : text.status();
    }
    auto baseline = Baseline::Parse(text.ok() ? *text : "", flags.baseline);
    if (!baseline.ok()) return baseline.status();
    options.baseline = *std::move(baseline);
  }
  if (flags.words.empty()) {
    return absl::InvalidArgumentError(
        flags.run ? "nothing to run: memtrace check --run -- PROGRAM ARGUMENTS"
                  : "nothing to check: memtrace check FILE...");
  }
  if (!flags.traces.empty() && !flags.run) {
    return absl::InvalidArgumentError("--traces: is for --run");
  }
  return absl::OkStatus();
}

// Is it JSON or XML, as what a CI server reads?
bool IsForServers(const std::string& path) {
  struct stat st;
  if (path.empty() || lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
  const int first = std::ifstream(path).get();
  return first == '<' || first == '{' || first == '[';
}

// Where there is no verdict, that of an earlier run must not be taken for one.
int FailWithout(const std::vector<OutputSpec>& outputs, const absl::Status& status) {
  const int exit_code = ExitCodeOf(status);
  for (const OutputSpec& output : outputs) {
    if (IsForServers(output.path) && unlink(output.path.c_str()) == 0) {
      std::fprintf(stderr, "memtrace: %s was of an earlier run, and is removed\n",
                   render::EscapeControls(output.path).c_str());
    }
  }
  return exit_code;
}

// What an entry matches by: its kinds and its frames, which are the innermost of a stack.
absl::string_view WithoutName(absl::string_view entry) {
  entry.remove_prefix(entry.find('\n', entry.find('\n') + 1) + 1);
  absl::ConsumeSuffix(&entry, "}\n");
  return entry;
}

// Every suppression's name says where it came from.
std::string GeneratedSuppressions(const GateReport& report) {
  std::string text;
  std::vector<std::string> written;
  for (const GateLeak& leak : report.result->leaks) {
    if (!IsGated(leak.verdict)) continue;
    const std::string kind =
        leak.kind == LeakKind::kUnfreed ? "" : std::string(KindName(leak.kind));
    // One fingerprint may be of several stacks: malloc, strdup and realloc by one caller.
    for (const auto& [function, stack] : leak.all) {
      const std::string one = SuppressionFor(
          absl::StrCat(leak.program, " ", leak.fingerprint, " ",
                       CallerWithoutLine(*report.names, stack)),
          kind, function, report.names->Frames(stack));
      // Of a deep stack an entry has the innermost frames: it may be another's, or one before it takes all of its.
      const absl::string_view body = WithoutName(one);
      if (std::ranges::any_of(written, [&](const std::string& before) { return absl::StartsWith(body, before); })) continue;
      written.emplace_back(body);
      absl::StrAppend(&text, one);
    }
  }
  return text;
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  auto out = render::Output::Open(path);
  if (!out.ok()) return out.status();
  out->Write(text);
  return out->Commit();
}

absl::Status WriteOutputs(const CheckFlags& flags, const CheckOptions& options,
                          GateReport& report) {
  for (const OutputSpec& output : options.outputs) {
    auto out = render::Output::Open(output.path);
    if (!out.ok()) return out.status();
    report.style = render::StyleFor(out->fd(), render::ColorMode::kNever, 0);
    if (output.format == GateFormat::kText && flags.quiet) {
      out->Write(absl::StrCat("memtrace check: ", VerdictLine(report), "\n"));
    } else {
      out->Write(RenderGate(output.format, report));
    }
    const absl::Status status = out->Commit();
    if (!status.ok()) return status;
  }
  if (!flags.gen_suppressions.empty()) {
    const absl::Status status = WriteFile(flags.gen_suppressions, GeneratedSuppressions(report));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The traces to look at, and of what there are none.
struct Evidence {
  TraceSet set;
  std::vector<std::string> missing;
};

Evidence EvidenceOf(const std::vector<std::string>& paths) {
  Evidence evidence;
  for (const std::string& path : paths) {
    const auto set = FindTraces({path});
    if (!set.ok()) {
      evidence.missing.emplace_back(set.status().message());
      continue;
    }
    evidence.set.files.insert(evidence.set.files.end(), set->files.begin(), set->files.end());
    evidence.set.total_bytes += set->total_bytes;
    for (const std::string& spool : set->spools) {
      evidence.missing.push_back(absl::StrCat(
          "a run has processes that had not ended, or has left traces, in ", spool,
          ": memtrace run --finish, when they have ended"));
    }
  }
  return evidence;
}

// What a run left in a directory, which may have traces of earlier runs, and of others at the same time.
Evidence EvidenceOfRun(const std::string& directory, bool kept, const RunOutcome& outcome) {
  Evidence evidence;
  std::string none;
  if (auto set = FindTraces({directory}); !set.ok()) {
    none = kept ? std::string(set.status().message()) : "there is no trace";
  } else {
    evidence.set = *std::move(set);
    std::set<std::string> of_run;
    for (const std::string& path : outcome.traces) of_run.insert(std::string(render::FileNameOf(path)));
    std::erase_if(evidence.set.files, [&](const TraceSet::File& file) {
      return !of_run.contains(std::string(render::FileNameOf(file.path)));
    });
    if (evidence.set.files.empty()) none = absl::StrCat(directory, " has no trace but those of other runs");
  }
  if (!none.empty() && outcome.missing.empty()) {
    evidence.missing.push_back(absl::StrCat(
        none, ": the program did not start, or cannot be traced (statically linked, set-user-ID, "
        "started without LD_PRELOAD, or run by another memtrace)"));
  }
  evidence.missing.insert(evidence.missing.end(), outcome.missing.begin(), outcome.missing.end());
  return evidence;
}

absl::StatusOr<int> Check(const CheckFlags& flags, const Evidence& evidence, CheckOptions& options) {
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
  symbolizer::Options symbolizer_options;
  symbolizer_options.debug_dirs.insert(symbolizer_options.debug_dirs.begin(),
                                       flags.debug_dirs.begin(), flags.debug_dirs.end());
  symbolizer_options.sysroot = flags.sysroot;
  symbolizer_options.cache_dir = symbolizer::SymbolCacheDirectory();
  symbolizer::SymbolizerProcess symbolizer(symbolizer_options);
  symbolizer.Settle();
  render::Progress progress;
  TreeAnalysis tree;
  GateInput input =
      ReadTraces(evidence.set, options.policy, ModuleNamesBy(&symbolizer),
                 [&](double share) { progress.Report("reading", share); }, &tree);
  for (const std::string& why : evidence.missing) input.unreadable.push_back({"", why});
  if (flags.run && flags.traces.empty()) {
    // They are gone when this is read.
    for (GateProcess& process : input.processes) process.file = std::string(render::FileNameOf(process.file));
    for (GateInput::Unreadable& one : input.unreadable) one.file = std::string(render::FileNameOf(one.file));
  }
  Analysis files = tree.sites.files();
  // What was called to end a block is looked up of these.
  for (const ProcessEnds& one : input.ends) {
    files.block_ends.push_back(one.ends);
    files.frees_with_stack += one.ends.by == BlockEnds::By::kFree && one.ends.to;
  }
  const SiteSymbols symbols(
      files, tree.sites.stacks(),
      [&](const symbolizer::Module& module, std::span<const symbolizer::Address> addresses) {
        return symbolizer.Symbolize(module, addresses);
      },
      [&](double share) { progress.Report("symbolizing", share); }, input.Stacks());
  const auto names = render::ReportView::Create(files, symbols, "");
  if (!names.ok()) return names.status();
  progress.Clear();

  GateResult result =
      Judge(input, *names, options.policy, options.baseline, &options.suppressions);
  if (flags.update_baseline) {
    // Of what was not seen nothing is known: a baseline without it would be wrong tomorrow.
    if (MissingEvidenceFails(result)) {
      return absl::FailedPreconditionError(
          absl::StrCat(flags.baseline, " is as it was: ", MissingEvidenceSentence(result)));
    }
    if (const absl::Status named = MayBecomeBaseline(result, *names); !named.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(flags.baseline, " is as it was: ", named.message()));
    }
    const std::set<std::string> programs(result.programs.begin(), result.programs.end());
    const std::string text =
        options.baseline.Update(BaselineOf(result, *names), programs, options.policy.fail_on);
    const absl::Status status = WriteFile(flags.baseline, text);
    if (!status.ok()) return status;
    auto updated = Baseline::Parse(text, flags.baseline);
    if (!updated.ok()) return updated.status();
    options.baseline = *std::move(updated);
    options.suppressions.ForgetMatches();
    result = Judge(input, *names, options.policy, options.baseline, &options.suppressions);
  }
  GateReport report;
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
  const absl::Status status = WriteOutputs(flags, options, report);
  if (!status.ok()) return status;
  return result.exit_code();
}

// The program's own failure is what counts; the gate's verdict is printed all the same.
int RunAndCheck(const CheckFlags& flags, CheckOptions& options) {
  std::optional<ScratchDirectory> scratch;
  std::string directory = flags.traces;
  if (directory.empty()) {
    directory = scratch.emplace("memtrace-check").path();
    if (directory.empty()) return ExitCodeOf(absl::UnavailableError(scratch->error()));
  } else if (mkdir(directory.c_str(), 0777) != 0) {
    const int error = errno;
    if (!IsDirectory(directory)) {
      return ExitCodeOf(absl::UnavailableError(absl::StrCat(
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
  RunOutcome outcome;
  const int status = RunSession(run, &outcome);
  absl::StatusOr<int> verdict =
      Check(flags, EvidenceOfRun(directory, !scratch.has_value(), outcome), options);
  const int gate = verdict.ok() ? *verdict : FailWithout(options.outputs, verdict.status());
  if (status == 0) return gate;
  std::fprintf(stderr, "memtrace: exit status %d %s; the gate's alone would be %d\n", status,
               outcome.is_the_programs ? "is the program's" : "is that of a program that was not traced", gate);
  return status;
}

}  // namespace

int CheckSession(const CheckFlags& flags) {
  CheckOptions options;
  if (const absl::Status status = ParseFlags(flags, &options); !status.ok()) {
    return FailWithout(options.outputs, status);
  }
  if (flags.run) return RunAndCheck(flags, options);
  const absl::StatusOr<int> verdict = Check(flags, EvidenceOf(flags.words), options);
  return verdict.ok() ? *verdict : FailWithout(options.outputs, verdict.status());
}

}  // namespace memtrace::report
