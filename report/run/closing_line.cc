#include "report/run/closing_line.h"

#include <signal.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/render/escape.h"

namespace memtrace::report {
namespace {

std::string Allocations(const FinishedTrace& trace) {
  const uint64_t count = trace.counts.allocations;
  return absl::StrCat(WithCommas(count), count == 1 ? " allocation" : " allocations");
}

std::string KillText(const KillFacts& facts) {
  const pressure::Kill& kill = facts.kill;
  switch (kill.verdict) {
    case format::KillVerdict::kOomKiller: {
      std::string text = "killed by the OOM killer (SIGKILL)";
      if (kill.limit_bytes != 0) {
        absl::StrAppend(&text, ", memory limit ", HumanBytes(kill.limit_bytes));
      }
      if (!facts.heap_then.empty()) absl::StrAppend(&text, ", ", facts.heap_then);
      return text;
    }
    case format::KillVerdict::kNotOomKiller: return "ended by SIGKILL, not by the OOM killer";
    case format::KillVerdict::kNotKnown: break;
  }
  return "ended by SIGKILL, perhaps by the OOM killer";
}

}  // namespace

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

std::string ShellWord(absl::string_view text) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  if (render::EscapeControls(text) != text) {
    return absl::StrCat(
        "$'", render::EscapeControls(absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}})),
        "'");
  }
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string WithCommas(uint64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

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
      absl::StrAppend(&line, "ended by ", SignalName(end->status),
                      end->core_dumped ? " (core dumped); " : "; ");
    }
  }
  absl::StrAppend(&line, "wrote ", main.path, " (", HumanBytes(main.bytes), ", ",
                  Allocations(main), ")");
  uint64_t dropped = 0;
  int error = 0;
  bool limit = false;
  for (const FinishedTrace& trace : result.traces) {
    dropped += trace.counts.dropped_events;
    if (trace.counts.loss_error != 0) error = trace.counts.loss_error;
    limit |= trace.counts.stopped_at_limit;
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
    if (others > 1) absl::StrAppend(&line, WithCommas(others), " more traces, the busiest ");
    absl::StrAppend(&line, biggest->path, " (", Allocations(*biggest), ")");
  }
  if (untraced_exec) {
    absl::StrAppend(&line, "; it then became a program that is not traced (static, setuid or another "
                           "environment?)");
  }
  if (limit) absl::StrAppend(&line, "; recording stopped at the size limit");
  if (dropped > 0) absl::StrAppend(&line, "; ", WithCommas(dropped), " events were lost");
  if (dropped > 0 && error != 0) absl::StrAppend(&line, " (", strerror(error), ")");
  absl::StrAppend(&line, "; next: memtrace report ", ShellWord(main.path));
  return line;
}

}  // namespace memtrace::report
