#include "report/command/info.h"

#include <algorithm>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/trace/trace_reader.h"
#include "report/words/escape.h"
#include "report/words/process_end.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

class Facts {
 public:
  explicit Facts(std::ostream* out) : out_(out) {}
  void Heading(absl::string_view text) {
    *out_ << (first_ ? "" : "\n") << text << '\n';
    first_ = false;
  }
  void Line(absl::string_view key, absl::string_view value) {
    *out_ << absl::StreamFormat("  %-22s %s\n", key, value);
  }
  void Number(absl::string_view key, uint64_t value) { Line(key, absl::StrCat(value)); }
  void NonZero(absl::string_view key, uint64_t value, absl::string_view meaning) {
    if (value != 0) Line(key, absl::StrCat(value, "  ", meaning));
  }

 private:
  std::ostream* const out_;
  bool first_ = true;
};

std::string Milliseconds(uint64_t ns) {
  return absl::StrFormat("%.2f ms", static_cast<double>(ns) / 1e6);
}

std::string Seconds(uint64_t ns) {
  return absl::StrFormat("%.6f s", static_cast<double>(ns) / 1e9);
}

std::string Date(int64_t realtime_ns) {
  const time_t seconds = realtime_ns / 1'000'000'000;
  struct tm local;
  char text[64];
  if (localtime_r(&seconds, &local) == nullptr) return "not known";
  const size_t n = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &local);
  return std::string(text, n);
}

std::string EndOf(const ProcessInfo& process) {
  if (process.imported()) return "not in the log";
  if (process.end == ProcessInfo::End::kExit) return words::ShortEnd(process);
  std::string end = words::EndPhrase(process);
  if (!process.kill.why.empty())
    absl::StrAppend(&end, ": ", words::EscapeControls(process.kill.why));
  return end;
}

const char* ClockName(format::ClockKind clock) {
  switch (clock) {
    case format::ClockKind::kTsc: return "TSC";
    case format::ClockKind::kMonotonicCoarseNs: return "CLOCK_MONOTONIC_COARSE";
    case format::ClockKind::kMonotonicNs: return "CLOCK_MONOTONIC";
  }
  return "unknown";
}

void PrintProcess(const Analysis& a, Facts& facts) {
  const ProcessInfo& p = a.process;
  facts.Heading("process");
  facts.Line("command", words::ShellCommand(p.command));
  facts.Line("executable", words::EscapeControls(p.executable));
  facts.Line("directory", words::EscapeControls(p.working_directory));
  facts.Line("pid", absl::StrCat(p.pid, ", parent ", p.ppid, p.forked ? ", forked" : ""));
  facts.Line("host", absl::StrCat(words::EscapeControls(p.host), ", Linux ",
                                  words::EscapeControls(p.kernel)));
  facts.Line("start", p.imported()       ? "not in the log"
                      : !p.start_known() ? "not known"
                                         : Date(p.start_realtime_ns));
  facts.Line("duration", Seconds(p.duration_ns));
  facts.Line("end", EndOf(p));
  const auto of_handlers =
      std::count_if(a.threads.begin(), a.threads.end(),
                    [](const auto& thread) { return thread.in_signal_handlers; });
  facts.Number("threads", a.threads.size() - static_cast<size_t>(of_handlers));
  if (of_handlers != 0) {
    facts.Line("signal handlers", absl::StrCat(of_handlers, " more streams of events, of handlers "
                                               "that interrupted the tracer"));
  }
  facts.Number("modules", a.modules.size());
  if (p.sample_bytes != 0) {
    facts.Line("sampled", absl::StrCat("every ", p.sample_bytes,
                                       " bytes on average: the events are "
                                       "those of sampled blocks"));
  }
  facts.Line("allocator", p.allocator == format::AllocatorKind::kGlibc   ? "glibc"
                          : p.allocator == format::AllocatorKind::kOther ? "not glibc's"
                                                                         : "unknown");
  facts.Line("stacks", p.stack_mode == format::StackMode::kOff ? "off" : "all");
  facts.Line("clock", ClockName(p.clock));
}

void PrintFile(const TraceReader& reader, const Analysis& a, size_t stacks, Facts& facts) {
  const TraceStatistics& s = reader.statistics();
  const bool packed = (reader.header().flags & format::kFilePacked) != 0;
  facts.Heading("trace");
  facts.Line("file", words::EscapeControls(reader.name()));
  facts.Line("format", absl::StrCat("version ", reader.header().version, ", ",
                                    packed ? "packed" : "raw", ", library ",
                                    words::EscapeControls(a.process.library_version)));
  facts.Line("size", absl::StrCat(words::HumanBytes(s.file_bytes), " (", s.file_bytes, ")"));
  facts.Line("event blocks", absl::StrCat(s.event_blocks, ", ", words::HumanBytes(s.event_bytes),
                                          ", decoded ", words::HumanBytes(s.event_content_bytes)));
  facts.Line("metadata blocks",
             absl::StrCat(s.metadata_blocks, ", ", words::HumanBytes(s.metadata_bytes), ", ",
                          reader.metadata().records, " records"));
  facts.Line("rings", absl::StrCat(s.ring_blocks, ", ", s.rings_used, " with events of their own"));
  facts.NonZero("memory scan blocks", s.scan_blocks, words::HumanBytes(s.scan_bytes));
  facts.NonZero("unknown blocks", s.unknown_blocks, "written by a newer version; skipped");
  facts.NonZero("gaps", s.gaps,
                absl::StrCat("reserved and not written, ", words::HumanBytes(s.gap_bytes)));
  facts.Number("events", a.coverage.events);
  facts.Number("distinct stack nodes", stacks);
  if (a.coverage.events != 0) {
    facts.Line("bytes an event",
               absl::StrFormat("%.2f", static_cast<double>(s.event_bytes) /
                                           static_cast<double>(a.coverage.events)));
  }
}

void PrintCoverage(const Analysis& a, Facts& facts) {
  const Coverage& c = a.coverage;
  facts.Heading("coverage");
  facts.Number("dropped events", c.dropped_events);
  facts.Number("lost blocks", c.lost_blocks);
  facts.Number("recovered events", c.recovered_events);
  facts.Number("unordered events", c.unordered_events);
  facts.Number("marked stacks", c.marked_stacks);
  if (a.process.forked) facts.Number("inherited frees", c.inherited_frees);
  facts.Number("unknown frees", c.unknown_frees);
  facts.Number("unseen frees", c.unseen_frees);
  facts.Line("cross-checked stacks",
             absl::StrCat(c.cross_checked, ", ", c.cross_check_differences, " differ"));
  if (!c.damage.empty()) facts.Line("damage", words::EscapeControls(c.damage));
  if (const std::string stops = StopsNote(c).text; !stops.empty()) facts.Line("note", stops);
  for (const CoverageNote& note : c.notes) facts.Line("note", words::EscapeControls(note.text));
}

void PrintScans(const Analysis& a, Facts& facts) {
  if (a.leak_scans.empty()) return;
  facts.Heading("memory scans");
  for (const LeakScan& scan : a.leak_scans) {
    const std::string name = absl::StrCat("scan ", scan.number);
    const std::string what =
        absl::StrCat(leak::ReasonName(scan.reason), scan.label.empty() ? "" : " ",
                     words::EscapeControls(scan.label), " at ", Seconds(scan.time_ns));
    if (scan.state != LeakScan::State::kDone) {
      facts.Line(name,
                 absl::StrCat(what, ": tells nothing: ", words::EscapeControls(scan.failure)));
      continue;
    }
    std::vector<std::string> kinds;
    for (size_t i = 0; i < 4; ++i) {
      kinds.push_back(absl::StrCat(KindName(static_cast<LeakKind>(i)), " ",
                                   scan.totals[i].bytes, " B in ", scan.totals[i].blocks));
    }
    facts.Line(name, absl::StrCat(what, ": ", absl::StrJoin(kinds, ", "), " blocks"));
    facts.Line("its cost",
               absl::StrCat("threads stood ", Milliseconds(scan.cost.stood_ns), " for the copy, ",
                            words::HumanBytes(scan.cost.root_bytes + scan.cost.heap_bytes),
                            " looked through in ", Milliseconds(scan.cost.cpu_ns), " of CPU",
                            scan.cost.in_process ? ", by the process itself" : ""));
    for (const std::string& note : scan.notes) facts.Line("note", words::EscapeControls(note));
  }
}

void PrintSamples(const Analysis& a, Facts& facts) {
  const PressureLane& lane = a.pressure;
  if (lane.empty()) return;
  facts.Heading("samples from outside");
  facts.Number("samples", lane.samples);
  facts.Line("from, to", absl::StrCat(Seconds(lane.points.front().time_ns), ", ",
                                      Seconds(lane.points.back().time_ns)));
  if (const auto cost = Summarize(lane.Series("sampler.cpu_us")); cost.known) {
    facts.Line("processor time", absl::StrCat(cost.last, " us of memtrace run's"));
  }
  if (const auto rss = Summarize(lane.ResidentBytes()); rss.known) {
    facts.Line("resident", absl::StrCat(words::HumanBytes(rss.most), " at most, ",
                                        words::HumanBytes(rss.last), " at last"));
  }
  for (const std::string& note : lane.notes) facts.Line("note", words::EscapeControls(note));
}

void PrintCost(const Analysis& a, Facts& facts) {
  if (!a.process.imported()) {  // the library was in no program that a log is of
    facts.Heading("the tool's own cost");
    facts.Line("memory", a.coverage.tool_memory_bytes == 0
                             ? "not known: it is counted at the end"
                             : words::HumanBytes(a.coverage.tool_memory_bytes));
    facts.Number("minor faults", a.coverage.tool_minor_faults);
  }
  if (a.coverage.counters.empty()) return;
  facts.Heading(a.process.imported() ? "counters of the import" : "counters of the library");
  for (const auto& [name, value] : a.coverage.counters)
    facts.Number(words::EscapeControls(name), value);
}

}  // namespace

absl::Status RunInfo(const InfoOptions& options, std::ostream& out) {
  auto reader = TraceReader::Open(options.file);
  if (!reader.ok()) return reader.status();
  auto trace = AnalyzeTrace(**reader, {});
  if (!trace.ok()) return trace.status();
  if (options.examine) options.examine(&trace->analysis);
  const Analysis& analysis = trace->analysis;
  Facts facts(&out);
  PrintProcess(analysis, facts);
  PrintFile(**reader, analysis, trace->stacks->size(), facts);
  PrintCoverage(analysis, facts);
  PrintScans(analysis, facts);
  PrintSamples(analysis, facts);
  PrintMarkedStacks(*trace, options.names, out);
  PrintCheckedStacks(*trace, options.names, out);
  PrintCost(analysis, facts);
  out.flush();
  if (!out) return absl::UnavailableError("cannot write to standard output: is the disk full?");
  return absl::OkStatus();
}

}  // namespace memtrace::report
