#include "report/gate/check_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/cli/refusals.h"
#include "report/gate/baseline_file.h"
#include "report/gate/earlier_verdicts.h"
#include "report/leak/leak_kinds.h"

namespace memtrace::report::gate {
namespace {

std::string Today() {
  const time_t now = time(nullptr);
  tm parts = {};
  gmtime_r(&now, &parts);
  return absl::StrFormat("%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

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
  for (const std::string& text : flags.programs) {
    const auto patterns = ParsePrograms(text);
    if (!patterns.ok()) return patterns.status();
    for (const std::string& pattern : *patterns) {
      if (!absl::c_linear_search(policy->programs, pattern)) policy->programs.push_back(pattern);
    }
  }
  policy->has_baseline = !flags.baseline.empty();
  policy->missing_evidence_fails = flags.missing_evidence != "report";
  policy->today = Today();
  const auto tolerance = ParseTolerance(flags.tolerance);
  if (!tolerance.ok()) return tolerance.status();
  if (flags.tolerance != "0" && flags.baseline.empty()) {
    return absl::InvalidArgumentError("--tolerance needs --baseline FILE");
  }
  policy->tolerance = *tolerance;
  const auto limit = [](absl::string_view option, bool counts) {
    return [option, counts](const std::string& text) { return ParseLimit(option, text, counts); };
  };
  absl::Status status =
      ParseAll(flags.max_leaked, limit("--max-leaked", false), &policy->max_leaked);
  status.Update(ParseAll(flags.max_peak, limit("--max-peak", false), &policy->max_peak));
  status.Update(ParseAll(flags.max_allocations, limit("--max-allocations", true),
                         &policy->max_allocations));
  // What is said of all programs takes the place of none.
  const auto frees = [&](const std::vector<std::string>& texts, absl::string_view option,
                         std::vector<Limit>* limits) {
    std::vector<Limit> given;
    status.Update(ParseAll(texts, limit(option, true), &given));
    if (std::ranges::any_of(given, [](const Limit& one) { return one.program.empty(); }))
      limits->clear();
    limits->insert(limits->end(), given.begin(), given.end());
  };
  frees(flags.max_invalid_frees, "--max-invalid-frees", &policy->max_invalid_frees);
  frees(flags.max_mismatched_frees, "--max-mismatched-frees", &policy->max_mismatched_frees);
  status.Update(ParseAll(
      flags.max_growth, [](const std::string& text) { return ParseGrowth(text); },
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

// Where one is wrong, `outputs` has the others all the same: there may be earlier verdicts in them.
absl::Status ParseOutputs(const CheckFlags& flags, std::vector<OutputSpec>* outputs) {
  GateFormat format = GateFormat::kText;
  absl::Status status;
  if (!flags.format.empty()) {
    const auto given = ParseGateFormat(flags.format);
    if (given.ok()) {
      format = *given;
    } else {
      status.Update(
          absl::InvalidArgumentError(absl::StrCat("--format: ", given.status().message())));
    }
  }
  bool plain = false;  // is --format taken up by a file?
  for (const std::string& text : flags.outputs) {
    OutputSpec output{format, OutputPath(text)};
    // A file that has a = in its name is meant as it is, unless what is before it
    // looks like a format.
    if (output.path == text) {
      plain = true;
    } else if (const auto named = ParseGateFormat(text.substr(0, text.find('='))); named.ok()) {
      output.format = *named;
    } else {
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          "--output: ", named.status().message(), "; for a file of that name write ./", text)));
    }
    if (output.path.empty()) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("--output: \"", text, "\" names no file")));
      continue;
    }
    if (output.path == "-") output.path.clear();
    status.Update(CheckWritable("--output", output.path));
    outputs->push_back(std::move(output));
  }
  const bool to_stdout = std::any_of(outputs->begin(), outputs->end(),
                                     [](const OutputSpec& one) { return one.path.empty(); });
  // The log of a build wants the verdict, whatever else is written.
  if (!to_stdout) outputs->push_back({plain ? GateFormat::kText : format, ""});
  return status;
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
    return absl::InvalidArgumentError(
        "standard output would be written twice: give all but one output a file");
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

}  // namespace

absl::Status ParseCheckFlags(const CheckFlags& flags, CheckOptions* parsed) {
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
    return absl::InvalidArgumentError("--update-baseline needs --baseline FILE");
  }
  if (!flags.baseline.empty()) {
    auto baseline = ReadBaseline(flags.baseline, /*may_be_absent=*/flags.update_baseline);
    if (absl::IsNotFound(baseline.status())) {
      return absl::NotFoundError(
          absl::StrCat(baseline.status().message(), "; --update-baseline makes it, or "
                       "MEMTRACE_UPDATE_BASELINE=1 in the environment, as for ctest"));
    }
    if (!baseline.ok()) return baseline.status();
    options.baseline = *std::move(baseline);
  }
  if (flags.words.empty()) {
    return absl::InvalidArgumentError(
        flags.run ? "nothing to run: memtrace check --run -- PROGRAM ARGUMENTS"
                  : "nothing to check: memtrace check FILE...");
  }
  if (!flags.traces.empty() && !flags.run) {
    return absl::InvalidArgumentError("--traces needs --run");
  }
  return absl::OkStatus();
}

}  // namespace memtrace::report::gate
