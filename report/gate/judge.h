// Judge: what of the leaks found is accepted, and by what. From GateInput, the names of its
// stacks, and what the user accepts, to a GateResult, which every output format shows.
//
// Leaks of one program with one kind and fingerprint are one leak, in however many processes
// they were; what the baseline says of it is about each process. A process without evidence
// takes no part.
//
// Single-threaded; nothing is read or written.

#ifndef MEMTRACE_REPORT_GATE_JUDGE_H_
#define MEMTRACE_REPORT_GATE_JUDGE_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/gate/baseline.h"
#include "report/gate/gate_input.h"
#include "report/gate/limits.h"
#include "report/gate/policy.h"
#include "report/render/view.h"
#include "report/suppress/suppressions.h"

namespace memtrace::report::gate {

enum class Verdict {
  kReported,  // of a kind that the gate is not about
  kNew,       // not in the baseline, or there is none
  kGrown,     // beyond what the baseline and the tolerance allow
  kExpired,   // in the baseline until a day that has passed
  kWithin,    // the baseline allows it
  kBudget,    // what counts is the sum: --max-leaked
};
absl::string_view VerdictName(Verdict verdict);  // "new"
bool IsGated(Verdict verdict);                   // it fails the gate

struct GateLeak {
  std::string program;
  LeakKind kind = LeakKind::kUnfreed;
  std::string fingerprint;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  StackId stack;              // of the one that weighs most
  uint64_t stacks = 0;        // how many have that fingerprint
  std::vector<std::pair<StackId, LeakAmount>> by_stack;  // that which weighs most first
  std::set<std::pair<format::AllocFunction, StackId>> all;  // and which allocated there
  LeakAmount total, indirect;  // of all processes
  LeakAmount most;            // of one process: bytes, and blocks, each the largest
  LeakAmount most_lost;       // kDefinite: the same with what is indirectly lost there
  uint64_t processes = 0;
  bool has_budget = true;     // --max-leaked holds for each of them
  std::string working_directory;  // of one of them
  Verdict verdict = Verdict::kReported;
  LeakAmount allowed;         // kGrown, kWithin, kExpired: by the baseline
  LeakAmount allowed_lost;    // kDefinite: the same of `most_lost`
  bool grown_in_all = false;  // kGrown: by `most_lost`, and `most` is allowed
  std::string until;          // the baseline's, if it says so
};

// What proves nothing, or is not there.
struct MissingPart {
  std::string file;     // the trace; empty: it is of none
  std::string program;  // of a process; empty: not known, or it is of none
  std::string why;
  bool was_killed = false;  // the process, which is why
};

// An entry of the baseline whose leak is there, and which a suppression takes now.
struct SuppressedEntry {
  BaselineEntry entry;
  const suppress::Suppression* by = nullptr;
};

struct GateResult {
  std::vector<GateLeak> leaks;     // gated ones first, then by kind and size
  std::vector<GateExcess> excesses;
  std::vector<BaselineEntry> fixed;    // in the baseline, looked for and not there
  std::vector<SuppressedEntry> suppressed_entries;  // looked for as well
  std::vector<BaselineEntry> not_run;  // of programs of which there is no process
  std::map<LostLeak, const suppress::Suppression*> suppressed_leaks;  // where there is a baseline
  // Programs of which a leak that the baseline does not allow has no function's name (its module is
  // gone, or stripped) and so another fingerprint: it may be any of those of the baseline.
  std::set<std::string> nameless;
  std::vector<MissingPart> missing_evidence;
  std::vector<std::string> notes;      // of the scans, each once
  std::array<LeakAmount, kLeakKinds> totals;  // without what is suppressed
  LeakAmount suppressed;
  // Of a process that is looked at some frees are in no trace: what it lost may
  // have been freed there.
  // Of the processes that were looked at, and did not become another program.
  bool all_scanned = true;
  bool frees_unseen = false;
  uint64_t processes = 0, usable = 0, replaced = 0;
  uint64_t other_processes = 0, other_programs = 0;  // not judged
  std::vector<std::string> programs;   // of usable processes
  std::map<std::string, uint64_t> duration_ns;  // of these, all processes of a program together
  uint64_t gated = 0;                  // of leaks
  GatePolicy policy;

  enum class Outcome { kClean = 0, kGated = 1, kNoEvidence = 2 } outcome = Outcome::kNoEvidence;
  int exit_code() const { return static_cast<int>(outcome); }
};
absl::string_view OutcomeName(GateResult::Outcome outcome);  // "clean", "failed", "no evidence"

// `names` is a view with the symbols of the stacks. Matches are counted in `suppressions`.
GateResult Judge(const GateInput& input, const render::ReportView& names, const GatePolicy& policy,
                 const Baseline& baseline, suppress::Suppressions* suppressions);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_JUDGE_H_
