// GateInput: what the traces of a run say that a gate is about, process by process, before
// symbols: leaks by stack, peaks, and whether the trace can be believed.
//
// Stacks are those of the TreeAnalysis' MergedSites, equal for the same code in all processes.

#ifndef MEMTRACE_REPORT_GATE_GATE_INPUT_H_
#define MEMTRACE_REPORT_GATE_GATE_INPUT_H_

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/analysis/unseen_allocators.h"
#include "report/base/strong_id.h"
#include "report/findings/analysis.h"
#include "report/findings/leaks.h"
#include "report/gate/policy.h"
#include "report/render/mismatches.h"
#include "report/tree/trace_set.h"
#include "report/tree/tree_analysis.h"

namespace memtrace::report::gate {

// An instant that the program named (memtrace.h): a mark, or the end of a phase. Of those that came
// several times, the first and the last.
struct PhaseMark {
  std::string name;
  uint64_t time_ns = 0;
  uint64_t live_bytes = 0;
};

struct GateProcess {
  std::string file;     // the trace
  std::string program;  // file name of the executable
  // What it was called as, where that is another name: redis-server is a link to redis-check-rdb.
  std::string called_as;
  uint32_t pid = 0;
  std::string working_directory;
  // Why nothing may be concluded from it; empty: it counts.
  std::string no_evidence;
  bool was_killed = false;  // as far as is known
  // It counts, and this of it nobody looked at; empty: all was looked at.
  std::string not_seen;
  // Why there is no trace of children that it forked; empty: there is, as far as is known.
  std::string untraced_children;
  // It replaced itself by another program, with all its memory: there is nothing to look for.
  bool replaced = false;
  bool failed = false;   // it was killed, ended by a signal, or with another status than 0
  bool scanned = false;  // there is a complete scan
  bool frees_unseen = false;  // LeakScan::frees_unseen of that
  bool pymalloc = false;  // Coverage::pymalloc, and it was scanned
  std::vector<std::string> notes;  // of the scan: what it did not see
  std::array<LeakAmount, kLeakKinds> totals;  // kUnfreed: live at the end
  uint64_t peak_bytes = 0, allocations = 0;
  render::CxxOperators operators;
  uint64_t duration_ns = 0;  // without memtrace's work at the exit
  std::vector<PhaseMark> phases;  // by time
  // It named more phases, or marks, than are told apart: what `phases` does not have may be one.
  bool has_other_phases = false, has_other_marks = false;

  bool IsNamed(absl::string_view name) const {
    return name == program || (!called_as.empty() && name == called_as);
  }
  bool IsNamedLike(absl::string_view pattern) const;  // with * and ?
  // Its heap was there to be looked at: not where another program took its place before a scan.
  bool had_its_heap() const { return !replaced || scanned; }
};

// The leak of one process with one stack.
struct ProcessLoss {
  uint32_t process = 0;  // element of GateInput::processes
  LeakKind kind = LeakKind::kUnfreed;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  StackId stack;
  LeakAmount direct, indirect;
};

// How blocks of one process ended: by what was certainly an invalid free, or by what may not fit to
// where they came from.
struct ProcessEnds {
  uint32_t process = 0;  // element of GateInput::processes
  bool invalid = false;
  BlockEnds ends;
};

struct GateInput {
  std::vector<GateProcess> processes;
  std::vector<ProcessLoss> losses;
  std::vector<ProcessEnds> ends;
  struct Unreadable {
    std::string file, why;
  };
  std::vector<Unreadable> unreadable;
  std::vector<std::string> notes;  // what else was given and not looked at
  // Of programs that the policy does not judge; nothing else here is of them.
  uint64_t other_processes = 0;
  std::set<std::string> other_programs;

  void AddOther(const std::string& program);
  // The process runs on as the program that it became, of which there is no trace yet.
  void RunsOn(uint32_t pid);
  std::vector<StackId> Stacks() const;  // of the losses and of the ends, once each
};

// Reads all traces of `set`. `tree` gets what AnalyzeTree() returns.
GateInput ReadTraces(const TraceSet& set, const GatePolicy& policy,
                     const FindModuleNames& find_names, const std::function<void(double)>& progress,
                     TreeAnalysis* tree);

// Takes away what is of programs that the policy does not judge, and counts it. A process that was
// killed before it had written who it is may be of any.
void LeaveOutOthers(const GatePolicy& policy, GateInput* input);

// Why an analysis is no evidence for such a policy; empty: it is.
std::string WhyNoEvidence(const Analysis& analysis, const GatePolicy& policy);
// A sentence about the leaks that an analysis which is evidence does not show; empty: it shows all.
std::string WhatWasNotSeen(const Analysis& analysis, const GatePolicy& policy);
// The same of what a program did behind a scan that came before its exit handlers and destructors,
// or that these asked for: what it allocated there and did not free. Empty: nothing.
std::string WhatCameBehindTheScan(const LeakScan& scan, const Analysis& analysis);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_GATE_INPUT_H_
