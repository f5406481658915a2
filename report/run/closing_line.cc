#include "report/run/closing_line.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/run/output_name.h"
#include "report/words/shell_words.h"
#include "report/words/signal_name.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

std::string Allocations(const FinishedTrace& trace) {
  if (trace.counts.newest) return "the newest events";
  return absl::StrCat(words::Plural(trace.counts.allocations, "allocation"),
                      trace.counts.sampled ? " sampled" : "");
}

std::string KillText(const KillFacts& facts) {
  const pressure::Kill& kill = facts.kill;
  switch (kill.verdict) {
    case format::KillVerdict::kOomKiller: {
      std::string text = "killed by the OOM killer (SIGKILL)";
      if (kill.limit_bytes != 0) {
        absl::StrAppend(&text, ", memory limit ", words::HumanBytes(kill.limit_bytes));
      }
      if (!facts.heap_then.empty()) absl::StrAppend(&text, ", ", facts.heap_then);
      return text;
    }
    case format::KillVerdict::kNotOomKiller: return "ended by SIGKILL, not by the OOM killer";
    case format::KillVerdict::kNotKnown: break;
  }
  return "ended by SIGKILL, perhaps by the OOM killer";
}

// Are there files of other runs that the pattern would take in? Of another one with the
// same FILE, or FILE.1.
bool HasOthers(const RunResult& result, absl::string_view stem, absl::string_view extension) {
  const std::filesystem::path directory = std::filesystem::path(std::string(stem)).parent_path();
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory.empty() ? "." : directory, error), end;
       !error && at != end; at.increment(error)) {
    const std::string path = (directory / at->path().filename()).string();
    if (!absl::StartsWith(path, absl::StrCat(stem, ".")) || !absl::EndsWith(path, extension) ||
        path.size() <= stem.size() + extension.size()) {
      continue;
    }
    if (std::ranges::find(result.traces, path, &FinishedTrace::path) == result.traces.end())
      return true;
  }
  return false;
}

// The files to name for a report of all processes: each, or those with the names of
// children by a pattern.
std::string FilesOf(const RunResult& result, const FinishedTrace& main) {
  constexpr size_t kNamed = 2, kMost = 20;  // beyond it no pattern is there, and no line to read
  std::string files = words::ShellFile(main.path);
  const size_t others = result.traces.size() - 1;
  if (others > kNamed) {
    const absl::string_view path = main.path;
    const absl::string_view extension = ExtensionOf(path);
    const absl::string_view stem = path.substr(0, path.size() - extension.size());
    const bool all_fit = std::ranges::all_of(result.traces, [&](const FinishedTrace& trace) {
      return &trace == &main || (absl::StartsWith(trace.path, absl::StrCat(stem, ".")) &&
                                 absl::EndsWith(trace.path, extension));
    });
    if (all_fit && !HasOthers(result, stem, extension))
      return absl::StrCat(files, " ", words::ShellFile(stem), ".*",
                          extension.empty() ? "" : words::ShellWord(extension));
  }
  if (others > kMost) return files;
  for (const FinishedTrace& trace : result.traces) {
    if (&trace != &main) absl::StrAppend(&files, " ", words::ShellFile(trace.path));
  }
  return files;
}

}  // namespace

std::string ClosingLine(const RunResult& result, const ProgramEnd* end, const KillFacts* kill) {
  // The trace that has the name the user gave, or else the first that there is.
  const auto named = std::find_if(result.traces.begin(), result.traces.end(),
                                  [](const FinishedTrace& trace) { return trace.main; });
  const FinishedTrace& main = named != result.traces.end() ? *named : result.traces.front();
  std::string line;
  if (end != nullptr && end->signaled) {
    if (kill != nullptr && end->status == SIGKILL) {
      absl::StrAppend(&line, KillText(*kill), "; ");
    } else {
      absl::StrAppend(&line, "ended by ", words::SignalName(end->status),
                      end->core_dumped ? " (core dumped); " : "; ");
    }
  }
  absl::StrAppend(&line, "wrote ", main.path, " (", words::HumanBytes(main.bytes), ", ",
                  Allocations(main), ")");
  uint64_t dropped = 0, untraced_children = 0;
  int error = 0;
  bool limit = false, early = false;
  for (const FinishedTrace& trace : result.traces) {
    dropped += trace.counts.dropped_events;
    untraced_children += trace.counts.untraced_children;
    if (trace.counts.loss_error != 0) error = trace.counts.loss_error;
    limit |= trace.counts.stopped_at_limit;
    early |= trace.counts.stopped_early;
  }
  // A process that failed to exec and was then killed looks the same.
  const bool untraced_exec =
      main.main && main.counts.ended_by_exec && end != nullptr && !end->signaled;
  if (const size_t others = result.traces.size() - 1; others > 0) {
    const FinishedTrace* biggest = nullptr;
    for (const FinishedTrace& trace : result.traces) {
      if (&trace != &main && (biggest == nullptr ||
                              trace.counts.allocations > biggest->counts.allocations)) {
        biggest = &trace;
      }
    }
    absl::StrAppend(&line, " and ");
    if (others > 1) absl::StrAppend(&line, words::Count(others), " more traces, the busiest ");
    absl::StrAppend(&line, biggest->path, " (", Allocations(*biggest), ")");
  }
  if (untraced_exec) {
    absl::StrAppend(&line,
                    "; it then became a program that is not traced (static, setuid, another "
                    "environment, or another user, who cannot write to the traces' directory?)");
  }
  if (limit) absl::StrAppend(&line, "; recording stopped at the size limit");
  if (early) {
    absl::StrAppend(&line, "; recording stopped before the program ended (the report says why)");
  }
  if (dropped > 0) {
    absl::StrAppend(&line, "; ", words::Count(dropped), " events were lost",
                    limit || early ? " on the way there" : "");
  }
  if (dropped > 0 && error != 0) absl::StrAppend(&line, " (", strerror(error), ")");
  if (untraced_children > 0) {
    absl::StrAppend(&line, "; ", words::Count(untraced_children),
                    untraced_children == 1 ? " forked child" : " forked children",
                    " could not create a trace (the report says why)");
  }
  absl::StrAppend(&line, "; next: memtrace report ", FilesOf(result, main));
  return line;
}

}  // namespace memtrace::report
