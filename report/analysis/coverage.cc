#include "report/analysis/coverage.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "format/notes.h"
#include "report/base/path.h"
#include "report/words/units.h"
#include "report/words/write_failure.h"

namespace memtrace::report {
namespace {

// format::kOpenedWithDeepBind, of several.
constexpr char kWereOpenedWithDeepBind[] = " were opened with RTLD_DEEPBIND";

// "FILE was opened with RTLD_DEEPBIND: what it allocates ...": PHP opens its extensions so, and
// sixteen such notes say what one does.
std::vector<std::string> WithOneForAllFiles(const std::vector<std::string>& notes) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> together, files;
  size_t place = 0;
  for (const std::string& note : notes) {
    const absl::string_view file = DeepboundFile(note);
    if (file.empty()) {
      together.push_back(note);
      continue;
    }
    if (files.empty()) {
      place = together.size();
      together.push_back(note);
    }
    files.emplace_back(FileNameOf(file));
  }
  if (files.size() < 2) return together;
  const size_t more = files.size() - std::min(files.size(), kNamed);
  files.resize(files.size() - more);
  together[place] =
      more == 0 ? absl::StrCat(absl::StrJoin(absl::MakeSpan(files).first(files.size() - 1), ", "),
                               " and ", files.back())
                : absl::StrCat(absl::StrJoin(files, ", "), " and ", more, " more");
  absl::StrAppend(&together[place], kWereOpenedWithDeepBind,
                  ": what they allocate and free by libc's malloc is not in this trace");
  return together;
}

// `at`: " at 1.234 s", or nothing.
std::string StopNote(const StopRecord& stop, absl::string_view at) {
  std::string note = absl::StrCat("Recording stopped", at, " ", WhyRecordingStopped(stop.why));
  if (stop.error != 0) absl::StrAppend(&note, " (", strerror(stop.error), ")");
  return note + "; what came later is not in this report.";
}

// What followed from rights that the program gave up, and the calls by which it did: a server that
// goes from user to user makes the same calls again and again.
struct Confinements {
  struct Call {
    std::string name;
    uint64_t first_ticks, last_ticks;
    size_t count = 1;
  };
  uint32_t what;
  bool has_reserve;
  std::vector<Call> calls;

  explicit Confinements(const ConfinementRecord& first)
      : what(first.what), has_reserve(first.reserve_end != 0) {}

  bool Take(const ConfinementRecord& next) {
    if (next.what != what || (next.reserve_end != 0) != has_reserve) return false;
    const auto call = std::ranges::find(calls, next.call, &Call::name);
    if (call == calls.end()) {
      calls.push_back({next.call, next.ticks, next.ticks});
    } else {
      call->last_ticks = next.ticks;
      ++call->count;
    }
    return true;
  }
};

// `clock` nullptr: without the times.
std::string ConfinementNote(const Confinements& kind, bool all_told, const ClockMap* clock) {
  const auto at = [clock](uint64_t ticks) {
    return absl::StrFormat("%.3f s", static_cast<double>(clock->ToNs(ticks)) / 1e9);
  };
  std::string note = "The program gave up rights";
  for (const Confinements::Call& call : kind.calls) {
    absl::StrAppend(&note, &call == &kind.calls.front() ? " by " : ", by ", call.name);
    if (clock == nullptr) continue;
    absl::StrAppend(&note, " at ", at(call.first_ticks));
    if (call.count == 1) continue;
    absl::StrAppend(&note, " and ", all_told ? "" : "at least ", call.count - 1,
                    call.count == 2 ? " time" : " times", " more until ", at(call.last_ticks));
  }
  absl::StrAppend(&note, ": ");
  if (kind.what == static_cast<uint32_t>(format::Confinement::kMemoryCallsOnly)) {
    absl::StrAppend(&note, "usage samples, thread names and memory maps end there");
  } else {
    absl::StrAppend(&note, kind.has_reserve ? "the trace went on in the part that was mapped before"
                                            : "no part of the trace could be mapped before");
  }
  return note + "; processes that it forked afterwards may have no trace.";
}

// `clock` nullptr: without the times, and how many they were.
std::string LossNote(const LostEventsRecord& loss, const ClockMap* clock) {
  const std::string why = words::WhyNotWritten(loss.why, loss.error);
  if (clock == nullptr)
    return absl::StrCat("Events could not be written to the trace (", why, ").");
  const double from = static_cast<double>(clock->ToNs(loss.first_ticks)) / 1e9;
  const double to = static_cast<double>(clock->ToNs(loss.last_ticks)) / 1e9;
  return absl::StrCat(loss.lost_events,
                      loss.lost_events == 1 ? " event" : " events", " up to ", to,
                      " s could not be written to the trace (", why,
                      "); the first write failed at ", from, " s.");
}

std::string LostScansNote(const LostScans& lost) {
  const std::string which =
      lost.first == lost.last
          ? absl::StrCat("Memory scan ", lost.last)
          : absl::StrCat("Memory scans ", lost.first, " to ", lost.last, ", or some of them,");
  return absl::StrCat(which, " could not be written to the trace: ", lost.why, ".");
}

// The process's own events are all there: the note is harmless to what is said of these.
CoverageNote UntracedChildrenNote(const Coverage& coverage) {
  return {.text = absl::StrCat(UntracedChildrenText(coverage),
                               "; what they did is in no trace, nor what they forked in turn."),
          .harmless = true,
          .of_evidence = true};
}

// Whether what the library was to record is all there, though the program may have stopped it.
bool LacksNothing(const Coverage& coverage) {
  return !coverage.events_missing && !coverage.truncated && PartText(coverage).empty() &&
         std::ranges::all_of(coverage.notes, &CoverageNote::harmless);
}

// Whether the process has ended in order without a word of it in the trace, as there was no room.
bool LacksItsEnd(const TraceMetadata& metadata, const ProcessInfo& process) {
  return metadata.lost_end.why != 0 && !metadata.end.has_value() &&
         process.end != ProcessInfo::End::kSignal;
}

}  // namespace

absl::string_view WhyRecordingStopped(uint64_t why) {
  switch (static_cast<format::RecordingStop>(why)) {
    case format::RecordingStop::kMaxBytes: return "at the size limit (MEMTRACE_MAX_BYTES)";
    case format::RecordingStop::kWriteFailed: return "because the trace could not be written";
    case format::RecordingStop::kFileReplaced: return "because the trace file was replaced";
    case format::RecordingStop::kOpenFailed: return "because the trace could not be opened";
    case format::RecordingStop::kSandboxed:
      return "because the program entered a sandbox that left no way to write more";
    case format::RecordingStop::kNoMemory:
      return "because the child of a fork got no memory to record in";
    case format::RecordingStop::kReserveUsedUp:
      return "because the program had given up the right to open its trace, and the part that was "
             "mapped before was used up (16 GiB; less under RLIMIT_AS, of which it is a sixteenth, and "
             "under RLIMIT_FSIZE; at most 64 MiB where the kernel or a filter leaves no way to "
             "populate pages; MEMTRACE_SAMPLE_BYTES makes it last)";
  }
  return "for a reason this version does not know";
}

bool InterruptedBehindTheEvents(const Analysis& analysis) {
  // An interruption among the events has ended the range at one of them.
  const Coverage& coverage = analysis.coverage;
  const uint64_t end_ns = coverage.live_until_ns != 0 ? coverage.live_until_ns : UINT64_MAX;
  return coverage.interrupted && analysis.range.to_ns == end_ns;
}

std::string InterruptionText(const Analysis& analysis) {
  if (!analysis.coverage.interrupted) return "";
  if (InterruptedBehindTheEvents(analysis)) {
    return "the reading was interrupted before it was known which frees were of blocks that had "
           "been freed before";
  }
  return absl::StrFormat("the reading was interrupted: this is of the first %.1f %% of the events, "
                         "up to %.3f s", 100 * analysis.coverage.read_share,
                         static_cast<double>(analysis.range.to_ns) / 1e9);
}

std::vector<std::string> CoverageNotes(const Analysis& analysis) {
  const Coverage& coverage = analysis.coverage;
  std::vector<std::string> notes;
  if (coverage.interrupted) notes.push_back(InterruptionText(analysis));
  for (std::string& text :
       MissingTexts(/*dropped_events=*/0, coverage.truncated, coverage.damage)) {
    notes.push_back(std::move(text));  // the events that were lost have a figure of their own
  }
  if (std::string stops = StopsNote(coverage).text; !stops.empty()) {
    notes.push_back(std::move(stops));
  }
  for (const CoverageNote& note : coverage.notes) notes.push_back(note.text);
  return notes;
}

CoverageNote StopsNote(const Coverage& coverage) {
  const uint64_t allocations = coverage.stopped_allocations;
  if (coverage.stops == 0 && allocations == 0) return {.text = "", .harmless = true};
  constexpr absl::string_view kBegin = "recording stopped by the program ";
  return {
      .text = absl::StrCat(kBegin, words::Plural(coverage.stops, "time"), " for ",
                           words::Duration(coverage.stopped_ns), ": ",
                           words::Plural(allocations, "allocation"), " then ",
                           allocations == 1 ? "is" : "are", " in no figure"),
      .without_times = absl::StrCat(kBegin, "(memtrace_stop): ",
                                    allocations == 0 ? "it allocated nothing then"
                                                     : "what it allocated then is in no figure"),
      .harmless = allocations == 0};
}

bool TellsOfDeepBind(const CoverageNote& note) {
  return absl::StrContains(note.text, format::kOpenedWithDeepBind) ||
         absl::StrContains(note.text, kWereOpenedWithDeepBind);
}

std::string UntracedChildrenText(const Coverage& coverage) {
  const UntracedChildren& children = coverage.untraced_children;
  if (children.count == 0) return "";
  return absl::StrCat(words::Count(children.count),
                      children.count == 1 ? " forked child" : " forked children",
                      " could not create a trace: ", children.why);
}

bool AllRecorded(const Coverage& coverage) {
  return LacksNothing(coverage) && coverage.stopped_allocations == 0 &&
         coverage.untraced_children.count == 0;
}

bool AllAllocationsSeen(const Analysis& analysis) {
  return LacksNothing(analysis.coverage) && analysis.coverage.unseen_allocators.empty() &&
         analysis.coverage.unseen_frees == 0 &&
         std::ranges::none_of(analysis.leak_scans, [](const LeakScan& scan) {
           return scan.allocations_unseen || scan.frees_unseen;
         });
}

namespace {

// PartText() of one that was read to its end.
std::string RecordedPartText(const Coverage& coverage) {
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  if (coverage.window_begin_ns != 0) {
    return absl::StrFormat("the trace keeps the newest events only, from %.3f s on",
                           seconds(coverage.window_begin_ns));
  }
  if (coverage.recording_end_ns.has_value()) {
    return absl::StrFormat("the recording ended before the program did, after %.3f s",
                           seconds(*coverage.recording_end_ns));
  }
  return "";
}

}  // namespace

std::string PartText(const Coverage& coverage) {
  const std::string part = RecordedPartText(coverage);
  return part.empty() && coverage.interrupted ? "its reading was interrupted" : part;
}

std::string RunPartText(const Coverage& coverage) {
  const std::string part = PartText(coverage);
  if (!part.empty() || coverage.live_until_ns == 0) return part;
  return absl::StrFormat("its process was at work still, after %.3f s",
                         static_cast<double>(coverage.live_until_ns) / 1e9);
}

std::vector<std::string> MissingTexts(uint64_t dropped_events, bool truncated,
                                      std::string_view damage) {
  std::vector<std::string> texts;
  if (dropped_events > 0)
    texts.push_back(absl::StrCat(words::Plural(dropped_events, "event"), " lost"));
  if (truncated) {
    texts.push_back(absl::StrCat("the trace is incomplete", damage.empty() ? "" : ": ",
                                 absl::string_view(damage.data(), damage.size())));
  }
  return texts;
}

std::vector<std::string> LossTexts(const Coverage& coverage) {
  std::vector<std::string> texts =
      MissingTexts(coverage.dropped_events, coverage.truncated, coverage.damage);
  if (std::string part = RecordedPartText(coverage); !part.empty()) {
    texts.push_back(std::move(part));
  }
  if (CoverageNote stops = StopsNote(coverage); !stops.harmless) {
    texts.push_back(std::move(stops.text));
  }
  return texts;
}

uint64_t ClockSlackNs(format::ClockKind clock) {
  switch (clock) {
    case format::ClockKind::kMonotonicCoarseNs:
      return 10'000'000;  // a tick of the slowest kernel clock in use, 100 Hz
    case format::ClockKind::kMonotonicNs:
    case format::ClockKind::kTsc:
      break;
  }
  // Processors are synchronized better than two events can follow one another. More
  // than is needed here does harm: a thread that waits is then given wrong partners.
  return 0;
}

void FillEnd(const TraceMetadata& metadata, uint64_t events_after_end_ns, ProcessInfo* process) {
  process->end = ProcessInfo::End::kCut;
  if (metadata.end.has_value()) {
    const EndRecord& end = *metadata.end;
    if (end.reason == format::EndReason::kExec) {
      if (end.failure_is_told
              ? metadata.execs.Replaced() && events_after_end_ns < kLongestExecNs
              : events_after_end_ns == 0) {
        // The end that the parent saw later was that of the program that took over.
        process->end = ProcessInfo::End::kExec;
        return;
      }
    } else if (!end.doubtful || events_after_end_ns == 0) {
      process->end = ProcessInfo::End::kExit;
      process->exit_status = end.exit_status;
      process->exit_at_once = end.reason == format::EndReason::kUnderscoreExit;
    }
  }
  if (metadata.observed_end.has_value()) {
    const ObservedEndRecord& end = *metadata.observed_end;
    const bool signal = end.kind == format::ObservedEndKind::kSignal;
    process->end = signal ? ProcessInfo::End::kSignal : ProcessInfo::End::kExit;
    process->end_signal = signal ? end.status_or_signal : 0;
    process->exit_status = signal ? 0 : end.status_or_signal;
    process->exit_unseen = !signal && !metadata.end.has_value();
    if (signal && end.status_or_signal == SIGKILL) process->kill = metadata.kill;
  }
}

namespace {

// What the process forbade itself, and the library with it.
void AddConfinementNotes(const TraceReader& reader, Coverage* coverage) {
  const TraceMetadata& metadata = reader.metadata();
  std::vector<Confinements> kinds;
  for (const ConfinementRecord& each : metadata.confinements) {
    if (each.what == 0) continue;  // only a reserve was mapped
    if (std::ranges::none_of(kinds, [&each](Confinements& kind) { return kind.Take(each); })) {
      kinds.emplace_back(each).Take(each);
    }
  }
  for (const Confinements& kind : kinds) {
    const bool all_told = metadata.confinements.size() < format::kMostConfinementsTold;
    // What is given up beside, as usage samples behind a filter, is no event of the heap. Events
    // that could not be written have counters of their own, and an end of the recording its record.
    coverage->notes.push_back({.text = ConfinementNote(kind, all_told, &reader.clock()),
                               .without_times = ConfinementNote(kind, all_told, nullptr),
                               .harmless = kind.has_reserve});
  }
}

void AddDoubtfulEndNote(const TraceMetadata& metadata, Analysis* analysis) {
  if (metadata.end.has_value() && metadata.end->doubtful &&
      analysis->process.end != ProcessInfo::End::kCut &&
      (analysis->process.end == ProcessInfo::End::kExec || !metadata.observed_end.has_value())) {
    analysis->coverage.notes.push_back(
        {"How the process ended is what was last written of it. After a seccomp filter a child "
         "that it made by vfork() may have written that of itself."});
  }
}

// What of the run is in the trace, and what is missing of it. Fills recording_end_ns, too.
void AddRecordingNotes(const TraceReader& reader, Analysis* analysis) {
  const TraceMetadata& metadata = reader.metadata();
  const TraceStatistics& statistics = reader.statistics();
  Coverage& coverage = analysis->coverage;
  std::vector<CoverageNote>& notes = coverage.notes;
  if (coverage.live_until_ns != 0) {
    notes.push_back(
        {.text = absl::StrFormat(
             "The process is at work: this is what it did in its first %.3f s, until its "
             "trace was opened.",
             static_cast<double>(coverage.live_until_ns) / 1e9),
         .without_times = "The process is at work: this is what it did until its trace was opened.",
         .harmless = true});
  }
  if (analysis->marks_left_out != 0) {
    const bool one = analysis->marks_left_out == 1;
    notes.push_back(
        {.text = absl::StrCat(analysis->marks_left_out, one ? " mark" : " marks",
                              " behind the first ", analysis->marks.size(), one ? " is" : " are",
                              " not told: memtrace report --from TIME has later ones."),
         .harmless = true,
         .of_lists = true});
  }
  if (analysis->phases_left_out != 0) {
    notes.push_back({.text = absl::StrCat("The program named more phases than are told apart: ",
                                          analysis->phases_left_out, " of others are not told."),
                     .harmless = true,
                     .of_lists = true});
  }
  if (const uint64_t missing = metadata.counter("coverage_notes_left_out"); missing != 0) {
    notes.push_back({absl::StrCat(missing, " more notes, as of libraries that were opened with "
                                  "RTLD_DEEPBIND, had no room in the trace.")});
  }
  if (metadata.notes_left_out != 0) {
    notes.push_back({absl::StrCat(metadata.notes_left_out, " more notes are in the trace.")});
  }
  if (metadata.stopped.has_value()) {
    const uint64_t end = reader.clock().ToNs(metadata.stopped->ticks);
    coverage.recording_end_ns = end;
    const std::string at = absl::StrFormat(" at %.3f s", static_cast<double>(end) / 1e9);
    notes.push_back({StopNote(*metadata.stopped, at), StopNote(*metadata.stopped, "")});
  }
  if (const uint64_t abandoned = metadata.counter("abandoned_events"); abandoned != 0) {
    notes.push_back({absl::StrCat(
        abandoned, abandoned == 1 ? " event was" : " events were",
        " interrupted by a signal handler "
        "that jumped away: an event may be missing, or its call not have happened.")});
  }
  if (metadata.losses.first_ticks != 0) {
    notes.push_back(
        {LossNote(metadata.losses, &reader.clock()), LossNote(metadata.losses, nullptr)});
  }
  if (coverage.lost_scans.last != 0) notes.push_back({LostScansNote(coverage.lost_scans)});
  if (!coverage.lost_end.empty()) {
    notes.push_back({absl::StrCat(
        "The end of the process could not be written to the trace: ", coverage.lost_end, ".")});
  }
  if (coverage.untraced_children.count != 0) notes.push_back(UntracedChildrenNote(coverage));
  if (reader.window_begin_ns() != 0) {
    const auto kept = [](absl::string_view from) {
      return absl::StrCat("The trace kept the newest events only (MEMTRACE_KEEP=newest)", from,
                          ". Blocks that were allocated before are not in this report, neither as "
                          "live nor as leaked.");
    };
    const double from = static_cast<double>(reader.window_begin_ns()) / 1e9;
    notes.push_back({kept(absl::StrFormat(": from %.3f s on", from)), kept("")});
  }
  if (!metadata.process.has_record) {
    notes.push_back({"The record of the process is missing: command and start time are "
                     "not known."});
  }
  if (statistics.lost_blocks > 0) {
    const bool one = statistics.lost_blocks == 1;
    notes.push_back({absl::StrCat(
        statistics.lost_blocks, one ? " block of events is" : " blocks of events are",
        " missing or damaged; stacks that ", one ? "it" : "they", " defined are marked as lost.")});
  }
}

void AddUnseenFreesNote(Analysis* analysis) {
  Coverage& coverage = analysis->coverage;
  if (coverage.unseen_frees == 0) return;
  coverage.notes.push_back({absl::StrCat(
      coverage.unseen_frees, coverage.unseen_frees == 1 ? " address was" : " addresses were",
      " allocated again without a free in the trace, ",
      coverage.events_missing ? "which may be among what is missing"
      : analysis->process.imported()
          ? "which the log may lack"
          : "as when libraries that were opened with RTLD_DEEPBIND free, when a function of the "
            "allocator's own frees (jemalloc's sdallocx), or when a block is freed twice and "
            "malloc then gives it out twice",
      "; what was there before counts as freed.")});
}

}  // namespace

void FillCoverage(const TraceReader& reader, Analysis* analysis) {
  const TraceMetadata& metadata = reader.metadata();
  const TraceStatistics& statistics = reader.statistics();
  Coverage& coverage = analysis->coverage;
  coverage.counters = metadata.counters;
  coverage.dropped_events =
      std::max({statistics.dropped_events, metadata.counter("dropped_events"),
                metadata.losses.lost_events}) +
      std::max(metadata.counter("missed_events"), metadata.losses.missed_events);
  coverage.lost_blocks = statistics.lost_blocks;
  coverage.cross_checked = metadata.counter("cross_checked");
  coverage.cross_check_differences = metadata.counter("cross_check_differences");
  coverage.tool_memory_bytes = metadata.counter("tool_memory_bytes");
  coverage.tool_minor_faults =
      std::max(metadata.counter("tool_minor_faults"), analysis->faults.tool_minor);
  coverage.damage = reader.damage();
  coverage.truncated = !coverage.damage.empty() || reader.cut();
  if (const LostScansRecord& lost = metadata.lost_scans; lost.last != 0) {
    coverage.lost_scans = {lost.first, lost.last,
                           words::WhyNotWrittenAndCure(lost.why, lost.error)};
  }
  if (const UntracedChildrenRecord& children = metadata.untraced_children; children.count != 0) {
    const auto why = static_cast<uint64_t>(format::RecordingStop::kWriteFailed);
    coverage.untraced_children = {children.count,
                                  words::WhyNotWrittenAndCure(why, children.error)};
  }
  if (LacksItsEnd(metadata, analysis->process)) {
    coverage.lost_end = words::WhyNotWrittenAndCure(metadata.lost_end.why, metadata.lost_end.error);
  }
  // A packer found this out when it had read all of the raw file: that was not cut.
  const bool is_packed = (reader.header().flags & format::kFilePacked) != 0;
  const bool lacks_end_alone = !coverage.lost_end.empty() && is_packed;
  if (coverage.damage.empty() && !reader.cut_place().empty() && !lacks_end_alone) {
    coverage.damage = reader.cut_place();
  } else if (coverage.damage.empty() && reader.cut() && !metadata.end.has_value()) {
    coverage.damage =
        absl::StrCat("the trace ends without an end: ",
                     coverage.lost_end.empty() ? "the process was killed or still runs"
                                               : "that could not be written",
                     statistics.lost_blocks == 0 ? "; everything it had written was read" : "");
  }
  // A line of a log that was not understood may be an event.
  coverage.events_missing = coverage.dropped_events != 0 || coverage.lost_blocks != 0 ||
                            metadata.counter("import_bad_lines") != 0 ||
                            !reader.damage().empty() ||
                            (!reader.cut_place().empty() && !lacks_end_alone);
  coverage.live_until_ns = reader.live_until_ns();
  // What a log lacks is in its counters: the notes of an import say where it comes from,
  // and why it lacks that.
  const bool harmless = analysis->process.imported();
  for (std::string& note : WithOneForAllFiles(metadata.NotesThatHold())) {
    coverage.notes.push_back({.text = std::move(note), .harmless = harmless});
  }
  AddConfinementNotes(reader, &coverage);
  AddDoubtfulEndNote(metadata, analysis);
  AddRecordingNotes(reader, analysis);
  AddUnseenFreesNote(analysis);
}

}  // namespace memtrace::report
