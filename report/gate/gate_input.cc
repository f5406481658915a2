#include "report/gate/gate_input.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/analysis/coverage.h"
#include "report/analysis/invalid_frees.h"
#include "report/analysis/unseen_allocators.h"
#include "report/base/path.h"
#include "report/leak/leak_scans.h"
#include "report/render/mismatches.h"
#include "report/render/view.h"
#include "report/suppress/suppressions.h"
#include "report/words/signal_name.h"
#include "report/words/units.h"

namespace memtrace::report::gate {
namespace {

constexpr char kEndNotScanned[] =
    "MEMTRACE_LEAK_CHECK=off, or it left by a way that is not seen, or by two threads at once, or "
    "MEMTRACE_MAX_BYTES left no room for it";

const LeakScan* LastScan(const Analysis& analysis) {
  return analysis.leak_scans.empty() ? nullptr : &analysis.leak_scans.back();
}

// At a size limit, on a full disk, in a sandbox.
std::string WhenItStopped(const Coverage& coverage) {
  return absl::StrFormat(
      "the recording stopped after %.3f s, before the process ended: memtrace report says why",
      static_cast<double>(*coverage.recording_end_ns) / 1e9);
}

// A phrase about events that are missing; empty: none are. Each missing event may be the free of a
// block that looks like a leak, or the allocation of one that is.
std::string WhyEventsAreMissing(const Analysis& analysis) {
  const Coverage& coverage = analysis.coverage;
  if (coverage.dropped_events > 0) {
    return absl::StrCat(
        words::Plural(coverage.dropped_events, "event"),
        analysis.process.imported() ? " are missing in the log" : " could not be written",
        coverage.recording_end_ns.has_value() ? absl::StrCat("; ", WhenItStopped(coverage)) : "");
  }
  if (!coverage.damage.empty()) return absl::StrCat("the trace is damaged: ", coverage.damage);
  if (coverage.lost_blocks > 0) return "parts of the trace are missing";
  if (coverage.window_begin_ns > 0) return "the trace has only the newest events";
  if (analysis.process.sample_bytes > 0) return "the trace is of a sample";
  for (const UnseenAllocator& unseen : coverage.unseen_allocators) {
    if (unseen.way == UnseenAllocator::Way::kComesFirst) {
      return absl::StrCat("the program's memory is not recorded: ", unseen.module,
                          " has a malloc of its own");
    }
  }
  if (!coverage.events_missing) return "";
  return analysis.process.imported()
             ? "lines of the log were not understood, and each may be an event"
             : "parts of what happened are not in the trace";
}

uint64_t JudgedBlocks(const LeakScan& scan) {
  uint64_t judged = scan.ignored.blocks;
  for (const LeakAmount& total : scan.totals) judged += total.blocks;
  return judged;
}

// A scan that looked at nothing although there was something proves nothing. What the program
// declared to be no leak was looked at.
bool JudgedNothing(const LeakScan& scan, const Analysis& analysis) {
  return JudgedBlocks(scan) == 0 && !leak::EndWasNotScanned(analysis) &&
         analysis.totals.live_blocks > 0;
}

// The blocks that are live at the end and were allocated after a scan.
struct Later {
  uint64_t blocks = 0;
  bool exact = true;  // else there are as many at least
};

// What is known of each site is how many of its blocks are live, and when the first and the last of
// these were allocated. Of one that has some of both sides at least one block is later.
Later AllocatedLater(const LeakScan& scan, const Analysis& analysis) {
  uint64_t least = 0, most = 0;
  for (const Site& site : analysis.sites) {
    if (site.live_blocks == 0 || site.live_last_time_ns <= scan.time_ns) continue;
    const bool all = site.live_first_time_ns > scan.time_ns;
    least += all ? site.live_blocks : 1;
    most += all ? site.live_blocks : std::max<uint64_t>(site.live_blocks - 1, 1);
  }
  // What is there beside as many as there were then is later, too.
  const uint64_t judged = JudgedBlocks(scan), live = analysis.totals.live_blocks;
  const uint64_t beside = live > judged ? live - judged : 0;
  return {std::clamp(beside, least, most), least == most};
}

std::string HowItEnded(const Analysis& analysis) {
  const ProcessInfo& process = analysis.process;
  if (!analysis.coverage.lost_end.empty() && process.end == ProcessInfo::End::kCut) {
    return absl::StrCat("its end could not be written to the trace: ", analysis.coverage.lost_end);
  }
  switch (process.end) {
    case ProcessInfo::End::kSignal:
      return absl::StrCat("killed by ", words::SignalName(process.end_signal));
    case ProcessInfo::End::kCut:
      if (process.at_work) return "it is at work still: its end is what would tell";
      return process.has_record ? "it was killed, still runs, or ended in a way that the library "
                                  "does not see, as by a raw exit_group of Go's runtime"
                                : "it was killed before it had written who it is";
    case ProcessInfo::End::kExec:
    case ProcessInfo::End::kExit: break;
  }
  return "";
}

// Why there is no scan of the end.
std::string WhyEndNotScanned(const Analysis& analysis) {
  if (const std::string lost = leak::LostScanText(analysis); !lost.empty()) return lost;
  if (const std::string ended = HowItEnded(analysis); !ended.empty()) return ended;
  if (!leak::EndedUnseen(analysis)) return kEndNotScanned;
  return absl::StrCat("it ", leak::kEndedUnseen, ": let it end by libc's exit(), in Go C.exit()");
}

std::vector<PhaseMark> MarksOf(const Analysis& analysis) {
  std::vector<PhaseMark> marks;
  for (const Phase& phase : analysis.phases) {
    if (phase.times == 0) continue;
    marks.push_back({phase.name, phase.first_end.time_ns, phase.first_end.live_bytes});
    if (phase.times > 1) {
      marks.push_back({phase.name, phase.last_end.time_ns, phase.last_end.live_bytes});
    }
  }
  for (const NamedMarks& named : analysis.named_marks) {
    marks.push_back({named.name, named.first.time_ns, named.first.live_bytes});
    if (named.times > 1) {
      marks.push_back({named.name, named.last.time_ns, named.last.live_bytes});
    }
  }
  std::stable_sort(marks.begin(), marks.end(), [](const PhaseMark& a, const PhaseMark& b) {
    return a.time_ns < b.time_ns;
  });
  return marks;
}

// The ends of blocks that the gate looks at, with the stacks of the trace.
std::vector<ProcessEnds> EndsOf(uint32_t process, const AnalyzedTrace& trace) {
  const Analysis& analysis = trace.analysis;
  std::vector<ProcessEnds> found;
  // An allocation in between may be among them.
  if (!WhyEventsAreMissing(analysis).empty()) return found;
  for (const InvalidFree* story : CertainInvalidFrees(analysis)) {
    const auto by = story->again.by_realloc ? BlockEnds::By::kRealloc : BlockEnds::By::kFree;
    found.push_back(
        {process,
         true,
         {story->allocated.stack, story->again.stack, story->function, by, story->times}});
  }
  // A realloc is a mistake if the block came from operator new. If that has a library of its own,
  // only blocks from that library are kept: so the names of the many others are not needed.
  const bool has_cxx_runtime = render::CxxOperatorsOf(analysis).has_runtime;
  const ModuleIndex modules(analysis.modules);
  for (const BlockEnds& ends : analysis.block_ends) {
    if (ends.by == BlockEnds::By::kRealloc && has_cxx_runtime) {
      const ModuleInfo* const module =
          ends.from ? modules.Find(trace.stacks->node(ends.from)) : nullptr;
      if (module == nullptr || !SiteSymbols::IsCxxRuntime(module->path)) continue;
    }
    found.push_back({process, false, ends});
  }
  return found;
}

// `program` replaced itself by one of which there is no trace.
std::string WhyBecameUnseen(const std::string& program) {
  if (program == "memtrace") {
    return "what a memtrace runs (also memtrace_add_leak_test, memtrace-valgrind) is in the traces "
           "of that one alone: leave such tests out, as with ctest -LE leak; they are gates of "
           "their own";
  }
  return "it became another program (exec), which is not traced: statically linked, set-user-ID "
         "or set-group-ID, of another architecture, started without LD_PRELOAD, run by another "
         "memtrace, or its trace was not given, or could not be created (by another user than "
         "before)";
}

// What the traces say of themselves. Processes of a program whose notes differ in their times alone
// say it without these, and so once.
class NotesOfPrograms {
 public:
  void Add(size_t process, const std::string& program, const CoverageNote& note) {
    const auto [at, is_new] = notes_.try_emplace({program, note.of_many()}, Note{note.text, {}});
    if (at->second.text != note.text) at->second.text = note.of_many();
    at->second.processes.push_back(process);
  }
  void AddTo(std::vector<GateProcess>* processes) const {
    for (const auto& [of, note] : notes_) {
      for (const size_t process : note.processes) {
        (*processes)[process].notes.push_back(absl::StrCat(of.first, ": ", note.text));
      }
    }
  }

 private:
  struct Note {
    std::string text;
    std::vector<size_t> processes;
  };
  std::map<std::pair<std::string, std::string>, Note> notes_;  // by the program and of_many()
};

}  // namespace

std::string WhyNoEvidence(const Analysis& analysis, const GatePolicy& policy) {
  std::string why = WhyEventsAreMissing(analysis);
  if (!why.empty()) return why;
  const std::string ended = HowItEnded(analysis);
  if (policy.looks_at_unfreed() && !ended.empty()) {
    return absl::StrCat("what it would have freed is not known: ", ended);
  }
  if (!policy.needs_scan() || analysis.process.end == ProcessInfo::End::kExec) return "";
  const LeakScan* last = LastScan(analysis);
  if (last == nullptr) {
    // A fork child that allocated nothing can have lost no block: it may end without a scan.
    const bool has_blocks = analysis.totals.allocations != 0 || !analysis.sites.empty();
    if (ended.empty() && analysis.process.forked && !has_blocks) return "";
    if (analysis.process.imported()) return "no leak scan: an imported log has none";
    if (analysis.coverage.recording_end_ns.has_value() && leak::LostScanText(analysis).empty()) {
      return absl::StrCat("no leak scan: ", WhenItStopped(analysis.coverage));
    }
    return absl::StrCat("no leak scan: ", WhyEndNotScanned(analysis));
  }
  if (last->state == LeakScan::State::kDone) {
    if (!JudgedNothing(*last, analysis)) return "";
    return absl::StrCat("the leak scan judged no block, though ",
                        words::Plural(analysis.totals.live_blocks, "block"),
                        analysis.totals.live_blocks == 1 ? " was not freed" : " were not freed");
  }
  return absl::StrCat(last->state == LeakScan::State::kFailed ? "the leak scan failed"
                                                              : "the leak scan was cut short",
                      last->failure.empty() ? "" : ": ", last->failure);
}

std::string WhatWasNotSeen(const Analysis& analysis, const GatePolicy& policy) {
  if (!policy.needs_scan() || !leak::EndWasNotScanned(analysis)) return "";
  const LeakScan* last = leak::ChooseScan(analysis, 0);
  return absl::StrCat("what it lost after its last leak scan, at ", words::Duration(last->time_ns),
                      ", is not known: ", WhyEndNotScanned(analysis));
}

std::string WhatCameBehindTheScan(const LeakScan& scan, const Analysis& analysis) {
  if (scan.reason == format::ScanReason::kExitLate || leak::EndWasNotScanned(analysis)) return "";
  const Later later = AllocatedLater(scan, analysis);
  if (later.blocks == 0) return "";
  return absl::StrCat(FileNameOf(analysis.process.executable), " (", analysis.process.pid,
                      scan.reason == format::ScanReason::kExitEarly
                          ? ") was scanned before its exit handlers and destructors (exit-early)"
                          : ") was last scanned on request, in what ran at its exit",
                      ", and ", later.exact ? "" : "at least ",
                      words::Plural(later.blocks, "block"), " allocated after that ",
                      later.blocks == 1 ? "was" : "were", " not freed at its end");
}

bool GateProcess::IsNamedLike(absl::string_view pattern) const {
  return suppress::WildcardMatches(pattern, program) ||
         (!called_as.empty() && suppress::WildcardMatches(pattern, called_as));
}

void GateInput::AddOther(const std::string& program) {
  ++other_processes;
  other_programs.insert(program);
}

void GateInput::RunsOn(uint32_t pid) {
  for (GateProcess& process : processes) {
    if (process.pid == pid && process.replaced) process.not_seen.clear();
  }
}

void LeaveOutOthers(const GatePolicy& policy, GateInput* input) {
  if (policy.programs.empty()) return;
  constexpr uint32_t kLeftOut = UINT32_MAX;
  std::vector<GateProcess> judged;
  std::vector<uint32_t> numbers;  // that the processes have from now on
  for (GateProcess& process : input->processes) {
    const bool is_judged = process.program.empty() || policy.Judges(process.program) ||
                           (!process.called_as.empty() && policy.Judges(process.called_as));
    numbers.push_back(is_judged ? static_cast<uint32_t>(judged.size()) : kLeftOut);
    if (is_judged) {
      judged.push_back(std::move(process));
    } else {
      input->AddOther(process.program);
    }
  }
  input->processes = std::move(judged);
  const auto renumber = [&](auto* of_processes) {
    std::erase_if(*of_processes,
                  [&](const auto& one) { return numbers[one.process] == kLeftOut; });
    for (auto& one : *of_processes) one.process = numbers[one.process];
  };
  renumber(&input->losses);
  renumber(&input->ends);
}

std::vector<StackId> GateInput::Stacks() const {
  absl::flat_hash_set<StackId> seen;
  std::vector<StackId> stacks;
  for (const ProcessLoss& loss : losses) {
    if (loss.stack && seen.insert(loss.stack).second) stacks.push_back(loss.stack);
  }
  for (const ProcessEnds& one : ends) {
    for (const StackId stack : {one.ends.from, one.ends.to}) {
      if (stack && seen.insert(stack).second) stacks.push_back(stack);
    }
  }
  return stacks;
}

namespace {

// The name that the process was started by, through a link; empty where it is the executable's.
std::string CalledAs(const ProcessInfo& process) {
  if (process.command.empty()) return "";
  const absl::string_view name = FileNameOf(process.command.front());
  return name == FileNameOf(process.executable) ? "" : std::string(name);
}

// Takes what the gate wants of each trace, one after the other, and makes one input of it.
class InputReader {
 public:
  explicit InputReader(const GatePolicy& policy) : policy_(policy) {}

  // `image`: the number of the trace's process.
  void See(size_t image, const AnalyzedTrace& trace, MergedSites& sites) {
    const Analysis& analysis = trace.analysis;
    GateProcess& process = input_.processes.emplace_back(ProcessOf(analysis));
    events_missing_.push_back(WhyEventsAreMissing(analysis));
    const auto number = static_cast<uint32_t>(image);
    const size_t first = input_.losses.size();
    std::vector<StackId> stacks;
    if (const LeakScan* scan = leak::ChooseScan(analysis, 0)) {
      AddScan(*scan, analysis, number, &process, &stacks);
    }
    AddNotes(analysis, &process);
    if (policy_.looks_at_unfreed()) AddUnfreed(analysis, number, &stacks);
    const std::vector<StackId> merged = sites.Translate(trace, stacks);
    for (size_t i = 0; i < merged.size(); ++i) input_.losses[first + i].stack = merged[i];
    AddEnds(number, trace, sites);
  }

  // After all traces of the tree.
  GateInput Finish(const TreeAnalysis& tree) {
    notes_.AddTo(&input_.processes);
    for (const TreeAnalysis::Skipped& skipped : tree.skipped) {
      if (skipped.is_copy) {
        input_.notes.push_back(absl::StrCat(skipped.file, " was not looked at: ", skipped.why));
      } else {
        input_.unreadable.push_back({skipped.file, skipped.why});
      }
    }
    // Only the trace of what a process became may show that it replaced itself. Its heap went with
    // it: as with memcheck, nobody looks for what it had lost until then.
    for (size_t i = 0; i < input_.processes.size(); ++i) {
      GateProcess& process = input_.processes[i];
      if (tree.images[i].process.end != ProcessInfo::End::kExec) continue;
      process.replaced = true;
      process.not_seen.clear();
      if (!process.scanned) process.no_evidence = events_missing_[i];
      // The trace of what it became must be there as well: that is a process of the run like
      // others.
      if (tree.tree.nodes[i].replaced_by == kNoImage && process.no_evidence.empty()) {
        process.not_seen = WhyBecameUnseen(process.program);
      }
    }
    return std::move(input_);
  }

 private:
  GateProcess ProcessOf(const Analysis& analysis) const {
    GateProcess process;
    process.file = analysis.file;
    process.program = std::string(FileNameOf(analysis.process.executable));
    process.called_as = CalledAs(analysis.process);
    process.pid = analysis.process.pid;
    process.working_directory = analysis.process.working_directory;
    process.no_evidence = WhyNoEvidence(analysis, policy_);
    const bool is_killed = analysis.process.end == ProcessInfo::End::kSignal ||
                           analysis.process.end == ProcessInfo::End::kCut;
    process.was_killed = is_killed && !analysis.process.at_work &&
                         analysis.coverage.lost_end.empty() &&
                         WhyEventsAreMissing(analysis).empty();
    process.not_seen = WhatWasNotSeen(analysis, policy_);
    process.untraced_children = UntracedChildrenText(analysis.coverage);
    process.peak_bytes = analysis.totals.peak_live_bytes;
    process.allocations = analysis.totals.allocations;
    process.operators = render::CxxOperatorsOf(analysis);
    process.duration_ns = analysis.process.own_duration_ns();
    process.failed = is_killed || analysis.process.exit_status != 0;
    process.totals[static_cast<size_t>(LeakKind::kUnfreed)] = {analysis.totals.live_bytes,
                                                               analysis.totals.live_blocks};
    process.phases = MarksOf(analysis);
    process.has_other_phases = analysis.phases_left_out != 0;
    process.has_other_marks = analysis.named_marks_left_out != 0;
    return process;
  }

  // `stacks`, here and below: gets the stack of each loss that is added, as the trace numbers it.
  void AddScan(const LeakScan& scan, const Analysis& analysis, uint32_t number,
               GateProcess* process, std::vector<StackId>* stacks) {
    process->scanned = true;
    process->frees_unseen = scan.frees_unseen;
    process->pymalloc = analysis.coverage.pymalloc;
    process->notes = scan.notes;
    if (std::string behind = WhatCameBehindTheScan(scan, analysis); !behind.empty()) {
      process->notes.push_back(std::move(behind));
    }
    for (const LeakKind kind :
         {LeakKind::kDefinite, LeakKind::kIndirect, LeakKind::kPossible, LeakKind::kReachable}) {
      process->totals[static_cast<size_t>(kind)] = scan.totals[static_cast<size_t>(kind)];
    }
    for (const LossRecord& record : scan.records) {
      input_.losses.push_back({number, record.kind, record.function, {},
                               {record.bytes, record.blocks},
                               {record.indirect_bytes, record.indirect_blocks}});
      stacks->push_back(record.stack);
    }
  }

  void AddUnfreed(const Analysis& analysis, uint32_t number, std::vector<StackId>* stacks) {
    for (const Site& site : analysis.sites) {
      if (site.live_blocks == 0) continue;
      input_.losses.push_back({number, LeakKind::kUnfreed, site.function, {},
                               {site.live_bytes, site.live_blocks}, {}});
      stacks->push_back(site.stack);
    }
  }

  void AddNotes(const Analysis& analysis, GateProcess* process) {
    // Events that were not recorded cannot fail the gate, but a reader who is told that
    // it is clean must know.
    if (process->no_evidence.empty()) {
      for (const CoverageNote& note : analysis.coverage.notes) {
        if (note.of_lists || note.of_evidence) continue;
        notes_.Add(input_.processes.size() - 1, process->program, note);
      }
    }
    if (analysis.coverage.stops > 0) {
      process->notes.push_back(
          absl::StrCat(process->program, " (", process->pid, ") stopped the recording ",
                       words::Plural(analysis.coverage.stops, "time"), ": ",
                       words::Plural(analysis.coverage.stopped_allocations, "allocation"),
                       " then are not looked at"));
    }
  }

  void AddEnds(uint32_t number, const AnalyzedTrace& trace, MergedSites& sites) {
    std::vector<ProcessEnds> ends = EndsOf(number, trace);
    std::vector<StackId> stacks;
    for (const ProcessEnds& one : ends) stacks.insert(stacks.end(), {one.ends.from, one.ends.to});
    const std::vector<StackId> merged = sites.Translate(trace, stacks);
    for (size_t i = 0; i < ends.size(); ++i) {
      ends[i].ends.from = merged[2 * i];
      ends[i].ends.to = merged[2 * i + 1];
    }
    std::ranges::move(ends, std::back_inserter(input_.ends));
  }

  const GatePolicy& policy_;
  GateInput input_;
  std::vector<std::string> events_missing_;  // by process
  NotesOfPrograms notes_;
};

}  // namespace

GateInput ReadTraces(const TraceSet& set, const GatePolicy& policy,
                     const FindModuleNames& find_names, const std::function<void(double)>& progress,
                     TreeAnalysis* tree) {
  InputReader reader(policy);
  *tree = AnalyzeTree(set, progress,
                      [&reader](size_t image, AnalyzedTrace& trace, MergedSites& sites) {
                        reader.See(image, trace, sites);
                      },
                      {.find_names = find_names, .leader = leak::LeaderBy::kCode});
  // What replaced a process, and what it replaced, is known by the numbers of all of them.
  GateInput input = reader.Finish(*tree);
  LeaveOutOthers(policy, &input);
  return input;
}

}  // namespace memtrace::report::gate
