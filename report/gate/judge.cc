#include "report/gate/judge.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/analysis/unseen_allocators.h"
#include "report/gate/wrong_frees.h"
#include "report/names/glib_slices.h"
#include "report/names/perl_frames.h"
#include "report/suppress/memcheck_stack.h"

namespace memtrace::report::gate {
namespace {

using format::AllocFunction;

constexpr size_t kMostNotes = 20;

void Add(const LeakAmount& from, LeakAmount* to) {
  to->bytes += from.bytes;
  to->blocks += from.blocks;
}
// Not more than there is.
void Take(const LeakAmount& part, LeakAmount* from) {
  from->bytes -= std::min(part.bytes, from->bytes);
  from->blocks -= std::min(part.blocks, from->blocks);
}

// What is worked out once for each stack.
class StackFacts {
 public:
  explicit StackFacts(const render::ReportView& names, suppress::Suppressions* suppressions)
      : names_(names), suppressions_(suppressions) {}

  suppress::Suppression* SuppressionOf(const ProcessLoss& loss) {
    return SuppressionOf(loss, loss.kind);
  }
  // If it were of that kind.
  suppress::Suppression* SuppressionOf(const ProcessLoss& loss, LeakKind kind) {
    const auto [at, is_new] =
        matches_.try_emplace(std::tuple(loss.stack, loss.function, kind), nullptr);
    if (is_new && !suppressions_->empty()) {
      const std::vector<const Frame*> frames = names_.Frames(loss.stack);
      at->second = suppressions_->Match(kind, suppress::AsMemcheckSees(loss.function, frames));
    }
    return at->second;
  }

  const std::string& FingerprintOf(const ProcessLoss& loss) {
    const auto [at, is_new] =
        fingerprints_.try_emplace(std::pair(loss.stack, loss.function));
    if (is_new) at->second = names_.Fingerprint(loss.stack, loss.function);
    return at->second;
  }

 private:
  const render::ReportView& names_;
  suppress::Suppressions* const suppressions_;
  absl::flat_hash_map<std::tuple<StackId, AllocFunction, LeakKind>, suppress::Suppression*>
      matches_;
  absl::flat_hash_map<std::pair<StackId, AllocFunction>, std::string> fingerprints_;
};

// The most that one process has of something. Losses come process by process.
class MostOfAProcess {
 public:
  void Add(const ProcessLoss& loss) {
    if (process_ != loss.process) of_process_ = {};
    process_ = loss.process;
    gate::Add(loss.direct, &of_process_);
    most_.bytes = std::max(most_.bytes, of_process_.bytes);
    most_.blocks = std::max(most_.blocks, of_process_.blocks);
  }
  const LeakAmount& most() const { return most_; }

 private:
  uint32_t process_ = UINT32_MAX;
  LeakAmount of_process_, most_;
};

// A leak while the losses of its processes are added up. Losses come process by process.
struct Sum {
  GateLeak leak;
  uint32_t process = UINT32_MAX;  // the one that is being added up
  MostOfAProcess most;
  std::map<StackId, LeakAmount> by_stack;

  void Add(const ProcessLoss& loss) {
    leak.processes += process != loss.process;
    process = loss.process;
    most.Add(loss);
    leak.most = most.most();
    gate::Add(loss.direct, &leak.total);
    gate::Add(loss.indirect, &leak.indirect);
    gate::Add(loss.direct, &by_stack[loss.stack]);
    leak.all.emplace(loss.function, loss.stack);
  }
};

// What --max-leaked adds up. A block that was lost is among those that were not freed,
// too: where these are looked at they are all of it. A process that another program
// replaced has freed nothing.
bool IsLeaked(const GatePolicy& policy, const GateProcess& process, LeakKind kind) {
  if (policy.looks_at_unfreed() && !process.replaced) return kind == LeakKind::kUnfreed;
  const LeakKindSet kinds = policy.fail_on.Without(LeakKind::kUnfreed).empty()
                                ? LeakKindSet::Of(LeakKind::kDefinite)
                                : policy.fail_on;
  return kinds.Has(kind) || (kind == LeakKind::kIndirect && kinds.Has(LeakKind::kDefinite));
}

bool IsWithin(const LeakAmount& allowed, const LeakAmount& leaked, const Tolerance& tolerance) {
  const bool bytes = tolerance.Allows(allowed.bytes, leaked.bytes);
  // A tolerance in bytes is about bytes; blocks then may be as many as they make.
  return bytes && (tolerance.bytes > 0 ||
                   Tolerance{0, tolerance.percent}.Allows(allowed.blocks, leaked.blocks));
}

// `may_hang_on_others`: some of what is lost in its program is suppressed, and where that leads to
// blocks of this leak they are no more of it.
Verdict VerdictOf(GateLeak* leak, const GatePolicy& policy, const Baseline& baseline,
                  bool may_hang_on_others) {
  if (!policy.fail_on.Has(leak->kind)) return Verdict::kReported;
  if (leak->has_budget && !policy.has_baseline) return Verdict::kBudget;
  const BaselineEntry* entry = baseline.Find(leak->kind, leak->fingerprint, leak->program);
  if (entry == nullptr) return Verdict::kNew;
  leak->allowed = {entry->bytes, entry->blocks};
  leak->allowed_lost = {std::max(entry->bytes, entry->lost.bytes),
                        std::max(entry->blocks, entry->lost.blocks)};
  leak->until = entry->until;
  if (!entry->until.empty() && policy.today > entry->until) return Verdict::kExpired;
  // Which of the lost blocks leads to the others is a matter of addresses and stale words, and a
  // list has one that leads however long it is: what counts is how much is lost in all.
  const bool lost_within = leak->kind == LeakKind::kDefinite &&
                           IsWithin(leak->allowed_lost, leak->most_lost, policy.tolerance);
  const bool leads_within = IsWithin(leak->allowed, leak->most, policy.tolerance);
  const bool by_itself = leak->kind != LeakKind::kDefinite || may_hang_on_others;
  if (lost_within || (by_itself && leads_within)) return Verdict::kWithin;
  leak->grown_in_all = leads_within;
  return Verdict::kGrown;
}

int Severity(LeakKind kind) { return static_cast<int>(kind); }

// One call of Judge(): its steps, in the order in which Run() takes them, and what they hand on.
class Judging {
 public:
  Judging(const GateInput& input, const render::ReportView& names, const GatePolicy& policy,
          const Baseline& baseline, suppress::Suppressions* suppressions)
      : input_(input),
        names_(names),
        policy_(policy),
        baseline_(baseline),
        suppressions_(suppressions),
        facts_(names, suppressions),
        leaked_(input.processes.size()) {}

  GateResult Run() {
    result_.policy = policy_;
    CountProcesses();
    CollectNotes();
    SumLosses();
    JudgeLeaks();
    NoteWhatHidesLeaks();
    FindNameless();
    FindFixed();
    CheckLimits();
    ConcludeOutcome();
    return std::move(result_);
  }

 private:
  // Which processes count, of what there is no evidence, and what was live at their ends.
  void CountProcesses();
  // What the reader should know: the input's notes, then those of scans and symbols.
  void CollectNotes();
  // Losses become leaks: those of one program, kind and fingerprint are added up,
  // suppressed ones apart.
  void SumLosses();
  // Each leak gets its verdict; those that fail the gate come first. What may be no leak of the
  // program gets a note.
  void JudgeLeaks();
  // Allocators within the programs, whatever the verdict: they may be why there is no leak.
  void NoteWhatHidesLeaks();
  void FindNameless();
  // What the baseline knows and no process had any more, or nobody is told of: it is suppressed, or
  // of a program that did not run.
  void FindFixed();
  // What is beyond a limit of the policy, and the limits that hold for no process.
  void CheckLimits();
  // The verdict on all of it.
  void ConcludeOutcome();

  const GateInput& input_;
  const render::ReportView& names_;
  const GatePolicy& policy_;
  const Baseline& baseline_;
  suppress::Suppressions* const suppressions_;
  StackFacts facts_;
  std::set<std::string> programs_;  // of the processes that count
  std::set<std::string> notes_;     // of these, and of the symbols: each once
  std::map<std::tuple<std::string, LeakKind, std::string>, Sum> sums_;
  // By program and fingerprint.
  std::map<std::pair<std::string, std::string>, MostOfAProcess> lost_;
  std::set<std::string> suppressed_losses_of_;  // programs
  std::vector<uint64_t> leaked_;  // for --max-leaked, by process
  GateResult result_;
};

void Judging::CountProcesses() {
  result_.processes = input_.processes.size();
  result_.other_processes = input_.other_processes;
  result_.other_programs = input_.other_programs.size();
  for (const GateInput::Unreadable& one : input_.unreadable) {
    result_.missing_evidence.push_back({one.file, "", one.why});
  }
  for (const GateProcess& process : input_.processes) {
    result_.replaced += process.replaced;
    if (!process.untraced_children.empty()) {
      result_.missing_evidence.push_back(
          {process.file, process.program, process.untraced_children});
    }
    if (!process.no_evidence.empty()) {
      result_.missing_evidence.push_back(
          {process.file, process.program, process.no_evidence, process.was_killed});
      continue;
    }
    if (!process.not_seen.empty()) {
      result_.missing_evidence.push_back({process.file, process.program, process.not_seen});
    }
    // One that became another program shows its peak, and nothing of what it would have freed.
    const bool of_leaks = policy_.needs_scan() || policy_.looks_at_unfreed();
    const bool was_looked_at = process.had_its_heap() || !of_leaks;
    result_.usable += was_looked_at;
    if (was_looked_at) {
      programs_.insert(process.program);
      result_.duration_ns[process.program] += process.duration_ns;
    }
    result_.all_scanned &= process.scanned || process.replaced;
    result_.frees_unseen |= process.frees_unseen;
    notes_.insert(process.notes.begin(), process.notes.end());
    if (policy_.looks_at_unfreed()) continue;  // SumLosses() adds it up, without what is suppressed
    if (process.replaced) continue;            // its heap went with it
    Add(process.totals[static_cast<size_t>(LeakKind::kUnfreed)],
        &result_.totals[static_cast<size_t>(LeakKind::kUnfreed)]);
  }
  result_.programs.assign(programs_.begin(), programs_.end());
  // Whoever it was meant for did not run, or has another name now.
  for (const std::string& pattern : policy_.programs) {
    if (std::ranges::any_of(input_.processes, [&](const GateProcess& process) {
          return process.IsNamedLike(pattern) && process.had_its_heap();
        })) {
      continue;
    }
    result_.missing_evidence.push_back(
        {"", "", absl::StrCat("--programs ", pattern, ": no process of that name was looked at")});
  }
}

void Judging::CollectNotes() {
  result_.notes = input_.notes;
  for (const std::string& note : names_.symbols().notes()) notes_.insert(note);
  for (const std::string& note : notes_) {
    if (result_.notes.size() == kMostNotes) break;
    result_.notes.push_back(note);
  }
}

void Judging::SumLosses() {
  for (const ProcessLoss& loss : input_.losses) {
    const GateProcess& process = input_.processes[loss.process];
    if (!process.no_evidence.empty()) continue;
    if (process.replaced && loss.kind == LeakKind::kUnfreed) continue;
    if (suppress::Suppression* suppression = facts_.SuppressionOf(loss)) {
      ++suppression->records;
      if (IsLost(loss.kind)) suppressed_losses_of_.insert(process.program);
      if (policy_.has_baseline) {
        result_.suppressed_leaks.try_emplace(
            LostLeakOf(process.program, loss.kind, facts_.FingerprintOf(loss)), suppression);
      }
      // A block that leaks is among those that were not freed, where these are looked at.
      if (policy_.looks_at_unfreed() == (loss.kind == LeakKind::kUnfreed)) {
        suppression->blocks += loss.direct.blocks;
        suppression->bytes += loss.direct.bytes;
        Add(loss.direct, &result_.suppressed);
        // And where these are not looked at, they were added up as a whole.
        if (loss.kind != LeakKind::kUnfreed && !process.replaced) {
          Take(loss.direct, &result_.totals[static_cast<size_t>(LeakKind::kUnfreed)]);
        }
      }
      continue;
    }
    Add(loss.direct, &result_.totals[static_cast<size_t>(loss.kind)]);
    if (IsLeaked(policy_, process, loss.kind)) leaked_[loss.process] += loss.direct.bytes;
    const std::string& fingerprint = facts_.FingerprintOf(loss);
    Sum& sum = sums_[{process.program, loss.kind, fingerprint}];
    if (sum.leak.processes == 0) {
      sum.leak.program = process.program;
      sum.leak.kind = loss.kind;
      sum.leak.fingerprint = fingerprint;
      sum.leak.function = loss.function;
      sum.leak.working_directory = process.working_directory;
    }
    sum.Add(loss);
    sum.leak.has_budget &= IsLimited(policy_.max_leaked, process);
    // A block whose leak is suppressed where it leads may hang on another one in the next run.
    if (IsLost(loss.kind) && facts_.SuppressionOf(loss, LeakKind::kDefinite) == nullptr) {
      lost_[{process.program, fingerprint}].Add(loss);
    }
  }
}

void Judging::JudgeLeaks() {
  for (auto& [key, sum] : sums_) {
    GateLeak& leak = sum.leak;
    if (leak.kind == LeakKind::kDefinite)
      leak.most_lost = lost_[{leak.program, leak.fingerprint}].most();
    leak.stacks = sum.by_stack.size();
    leak.by_stack.assign(sum.by_stack.begin(), sum.by_stack.end());
    std::stable_sort(leak.by_stack.begin(), leak.by_stack.end(), [](const auto& a, const auto& b) {
      return a.second.bytes > b.second.bytes;
    });
    leak.stack = leak.by_stack.front().first;
    leak.verdict =
        VerdictOf(&leak, policy_, baseline_, suppressed_losses_of_.contains(leak.program));
    result_.gated += IsGated(leak.verdict);
    result_.leaks.push_back(std::move(leak));
  }
  // As in a report by what is lost with it: the head of a list is small.
  const auto weight = [](const GateLeak& leak) { return leak.total.bytes + leak.indirect.bytes; };
  std::sort(result_.leaks.begin(), result_.leaks.end(), [&](const GateLeak& a, const GateLeak& b) {
    return std::tuple(!IsGated(a.verdict), Severity(a.kind), weight(b), b.total.blocks, a.program,
                      a.fingerprint) <
           std::tuple(!IsGated(b.verdict), Severity(b.kind), weight(a), a.total.blocks, b.program,
                      b.fingerprint);
  });
  const bool of_perl = std::ranges::any_of(result_.leaks, [&](const GateLeak& leak) {
    const bool lost = leak.kind != LeakKind::kReachable && leak.kind != LeakKind::kUnfreed;
    return lost && leak.verdict != Verdict::kReported && leak.verdict != Verdict::kWithin &&
           PassesThroughPerl(names_.symbols(), leak.stack);
  });
  if (of_perl) result_.notes.insert(result_.notes.begin(), kPerlKeeps);
}

void Judging::NoteWhatHidesLeaks() {
  if (!policy_.needs_scan()) return;
  const auto counts = [](const GateProcess& process) { return process.no_evidence.empty(); };
  const auto put_first = [this](const char* note) {
    result_.notes.insert(result_.notes.begin(), note);
  };
  if (std::ranges::any_of(input_.processes, [&](const GateProcess& process) {
        return process.pymalloc && counts(process);
      })) {
    put_first(kPymallocHides);
  }
  if (std::ranges::any_of(input_.losses, [&](const ProcessLoss& loss) {
        return loss.kind != LeakKind::kUnfreed && counts(input_.processes[loss.process]) &&
               IsASlab(names_.symbols(), loss.function, loss.stack);
      })) {
    put_first(kSlabsHideSlices);
  }
}

void Judging::FindNameless() {
  for (const GateLeak& leak : result_.leaks) {
    if (leak.verdict == Verdict::kWithin) continue;
    const Frame* caller = names_.Caller(leak.stack);
    if ((caller != nullptr && caller->function.empty()) ||
        !names_.NamelessModule(leak.stack).empty()) {
      result_.nameless.insert(leak.program);
    }
  }
}

void Judging::FindFixed() {
  std::set<std::string> ran;
  for (const GateProcess& process : input_.processes) ran.insert(process.program);
  for (const BaselineEntry& entry : baseline_.entries()) {
    // A trace that cannot be read may be of any.
    if (input_.unreadable.empty() && entry.program != "*" && policy_.Judges(entry.program) &&
        !ran.contains(entry.program)) {
      result_.not_run.push_back(entry);
    }
    if (!policy_.fail_on.Has(entry.kind)) continue;
    // Of any program: some other may still have it.
    const bool looked_for = programs_.contains(entry.program);
    const bool found =
        std::any_of(result_.leaks.begin(), result_.leaks.end(), [&](const GateLeak& leak) {
          // Which block of a ring leads to the others is a matter of the build.
          return (leak.kind == entry.kind || (IsLost(leak.kind) && IsLost(entry.kind))) &&
                 leak.fingerprint == entry.fingerprint && leak.program == entry.program;
        });
    if (!looked_for || found) continue;
    const auto suppressed = result_.suppressed_leaks.find(
        LostLeakOf(entry.program, entry.kind, entry.fingerprint));
    if (suppressed != result_.suppressed_leaks.end()) {
      result_.suppressed_entries.push_back({entry, suppressed->second});
    } else if (!result_.nameless.contains(entry.program)) {
      result_.fixed.push_back(entry);
    }
  }
}

void Judging::CheckLimits() {
  const WrongFrees frees(input_, names_, suppressions_);
  std::vector<std::string> missing;
  result_.excesses = FindExcesses(input_, policy_, leaked_, frees, &missing);
  for (std::string& why : missing) result_.missing_evidence.push_back({"", "", std::move(why)});
}

void Judging::ConcludeOutcome() {
  const bool failed = result_.gated > 0 || !result_.excesses.empty();
  const bool blind = result_.usable == 0 ||
                     (!result_.missing_evidence.empty() && policy_.missing_evidence_fails);
  result_.outcome = failed  ? GateResult::Outcome::kGated
                    : blind ? GateResult::Outcome::kNoEvidence
                            : GateResult::Outcome::kClean;
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReported: return "reported";
    case Verdict::kNew: return "new";
    case Verdict::kGrown: return "grown";
    case Verdict::kExpired: return "expired";
    case Verdict::kWithin: return "within";
    case Verdict::kBudget: return "in the budget";
  }
  return "";
}

bool IsGated(Verdict verdict) {
  return verdict == Verdict::kNew || verdict == Verdict::kGrown || verdict == Verdict::kExpired;
}

absl::string_view OutcomeName(GateResult::Outcome outcome) {
  switch (outcome) {
    case GateResult::Outcome::kClean: return "clean";
    case GateResult::Outcome::kGated: return "failed";
    case GateResult::Outcome::kNoEvidence: return "no evidence";
  }
  return "";
}

GateResult Judge(const GateInput& input, const render::ReportView& names, const GatePolicy& policy,
                 const Baseline& baseline, suppress::Suppressions* suppressions) {
  return Judging(input, names, policy, baseline, suppressions).Run();
}

}  // namespace memtrace::report::gate
