#include "report/words/process_end.h"

#include "absl/strings/str_cat.h"
#include "report/words/signal_name.h"

namespace memtrace::report::words {
namespace {

std::string KillText(format::KillVerdict verdict) {
  switch (verdict) {
    case format::KillVerdict::kOomKiller: return "killed by the OOM killer (SIGKILL)";
    case format::KillVerdict::kNotOomKiller: return "killed by SIGKILL, not by the OOM killer";
    case format::KillVerdict::kNotKnown: break;
  }
  return "killed by SIGKILL, perhaps by the OOM killer";
}

}  // namespace

absl::string_view EndName(ProcessInfo::End end) {
  switch (end) {
    case ProcessInfo::End::kExit: return "exit";
    case ProcessInfo::End::kExec: return "exec";
    case ProcessInfo::End::kSignal: return "signal";
    case ProcessInfo::End::kCut: return "cut";
  }
  return "cut";
}

std::string ShortEnd(const ProcessInfo& process) {
  switch (process.end) {
    case ProcessInfo::End::kExit: return absl::StrCat("exit ", process.exit_status);
    case ProcessInfo::End::kExec: return "exec";
    case ProcessInfo::End::kSignal: return SignalName(process.end_signal);
    case ProcessInfo::End::kCut: return process.at_work ? "at work" : "cut";
  }
  return "cut";
}

std::string EndPhrase(const ProcessInfo& process) {
  switch (process.end) {
    case ProcessInfo::End::kExit: return absl::StrCat("exit status ", process.exit_status);
    case ProcessInfo::End::kExec: return "replaced itself by exec";
    case ProcessInfo::End::kSignal:
      return process.kill.told() ? KillText(process.kill.verdict)
                                 : absl::StrCat("killed by ", SignalName(process.end_signal));
    case ProcessInfo::End::kCut:
      if (process.at_work) return "not yet: it is at work";
      if (!process.has_record) {
        return "not in the trace, nor who it was (killed at its start, or the trace is damaged)";
      }
      return "not in the trace (killed, still running, a raw exit_group, or it could no longer "
             "write)";
  }
  return "";
}

}  // namespace memtrace::report::words
