#include "report/gate/judge.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/gate/memcheck_stack.h"
#include "report/gate/wrong_frees.h"
#include "report/render/units.h"

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
  explicit StackFacts(const render::ReportView& names, Suppressions* suppressions)
      : names_(names), suppressions_(suppressions) {}

  Suppression* SuppressionOf(const ProcessLoss& loss) {
    const auto [at, is_new] = matches_.try_emplace(
        std::tuple(loss.stack, loss.function, loss.kind), nullptr);
    if (is_new && !suppressions_->empty()) {
      const std::vector<const Frame*> frames = names_.Frames(loss.stack);
      at->second = suppressions_->Match(loss.kind, AsMemcheckSees(loss.function, frames));
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
  Suppressions* const suppressions_;
  absl::flat_hash_map<std::tuple<StackId, AllocFunction, LeakKind>, Suppression*> matches_;
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

// With --max-leaked for a process only the sum of its leaks counts, and not each of them.
bool HasBudget(const GatePolicy& policy, const GateProcess& process) {
  return std::any_of(policy.max_leaked.begin(), policy.max_leaked.end(), [&](const Limit& limit) {
    return limit.program.empty() || process.IsNamed(limit.program);
  });
}

bool IsWithin(const LeakAmount& allowed, const LeakAmount& leaked, const Tolerance& tolerance) {
  const bool bytes = tolerance.Allows(allowed.bytes, leaked.bytes);
  // A tolerance in bytes is about bytes; blocks then may be as many as they make.
  return bytes && (tolerance.bytes > 0 ||
                   Tolerance{0, tolerance.percent}.Allows(allowed.blocks, leaked.blocks));
}

Verdict VerdictOf(GateLeak* leak, const GatePolicy& policy, const Baseline& baseline) {
  if (!policy.fail_on.Has(leak->kind)) return Verdict::kReported;
  if (leak->has_budget && !policy.has_baseline) return Verdict::kBudget;
  const BaselineEntry* entry = baseline.Find(leak->kind, leak->fingerprint, leak->program);
  if (entry == nullptr) return Verdict::kNew;
  leak->allowed = {entry->bytes, entry->blocks};
  leak->until = entry->until;
  if (!entry->until.empty() && policy.today > entry->until) return Verdict::kExpired;
  // Which of the lost blocks leads to the others is a matter of addresses and stale words: where no
  // more are lost than before, it is the same leak.
  const bool within =
      IsWithin(leak->allowed, leak->most, policy.tolerance) ||
      (entry->lost.blocks != 0 && IsWithin(entry->lost, leak->most_lost, policy.tolerance));
  return within ? Verdict::kWithin : Verdict::kGrown;
}

// Which processes are beyond a limit; the one that is furthest stands for them.
class Excesses {
 public:
  Excesses(const GateInput& input, std::vector<GateExcess>* out) : input_(input), out_(out) {}

  template <typename ValueOf>
  void Check(GateExcess::What what, const std::vector<Limit>& limits, ValueOf value_of) {
    Check(
        what, limits, value_of, [](size_t) { return std::vector<std::string>(); },
        /*needs_evidence=*/true);
  }
  // What is certain of any process.
  template <typename ValueOf, typename DetailsOf>
  void CheckOfAny(GateExcess::What what, const std::vector<Limit>& limits, ValueOf value_of,
                  DetailsOf details_of) {
    Check(what, limits, value_of, details_of, /*needs_evidence=*/false);
  }

 private:
  template <typename ValueOf, typename DetailsOf>
  void Check(GateExcess::What what, const std::vector<Limit>& limits, ValueOf value_of,
             DetailsOf details_of, bool needs_evidence) {
    for (const Limit& limit : limits) {
      GateExcess worst;
      for (size_t i = 0; i < input_.processes.size(); ++i) {
        const GateProcess& process = input_.processes[i];
        if (needs_evidence && !process.no_evidence.empty()) continue;
        if (!limit.program.empty() ? !process.IsNamed(limit.program)
                                   : HasOwnLimit(limits, process)) {
          continue;
        }
        const uint64_t value = value_of(i);
        if (value <= limit.most) continue;
        ++worst.processes;
        if (value < worst.value) continue;
        worst.program = process.program;
        worst.file = process.file;
        worst.pid = process.pid;
        worst.value = value;
        worst.details = details_of(i);
      }
      if (worst.processes == 0) continue;
      worst.what = what;
      worst.limit = limit.most;
      out_->push_back(worst);
    }
  }

  static bool HasOwnLimit(const std::vector<Limit>& limits, const GateProcess& process) {
    return std::any_of(limits.begin(), limits.end(), [&](const Limit& limit) {
      return !limit.program.empty() && process.IsNamed(limit.program);
    });
  }

  const GateInput& input_;
  std::vector<GateExcess>* const out_;
};

// From the first mark `from` to the last mark `to` behind it, or to itself.
bool GrowthOf(const GateProcess& process, const GrowthLimit& limit, uint64_t* growth) {
  const auto from = std::find_if(process.phases.begin(), process.phases.end(),
                                 [&](const PhaseMark& mark) { return mark.name == limit.from; });
  if (from == process.phases.end()) return false;
  for (auto to = process.phases.end(); to != from;) {
    --to;
    if (to->name != limit.to) continue;
    *growth = to->live_bytes > from->live_bytes ? to->live_bytes - from->live_bytes : 0;
    return true;
  }
  return false;
}

bool HoldsFor(const GrowthLimit& limit, const std::vector<GrowthLimit>& all,
              const GateProcess& process) {
  if (!limit.program.empty()) return process.IsNamed(limit.program);
  return std::none_of(all.begin(), all.end(), [&](const GrowthLimit& other) {
    return !other.program.empty() && process.IsNamed(other.program) && other.from == limit.from &&
           other.to == limit.to;
  });
}

void CheckGrowth(const GateInput& input, const GatePolicy& policy, GateResult* result) {
  for (const GrowthLimit& limit : policy.max_growth) {
    GateExcess worst;
    bool passed_both = false;
    for (const GateProcess& process : input.processes) {
      uint64_t growth = 0;
      if (!process.no_evidence.empty() || !GrowthOf(process, limit, &growth)) continue;
      passed_both |= limit.program.empty() || process.IsNamed(limit.program);
      if (!HoldsFor(limit, policy.max_growth, process)) continue;
      if (growth <= limit.most) continue;
      ++worst.processes;
      if (growth < worst.value) continue;
      worst.program = process.program;
      worst.file = process.file;
      worst.pid = process.pid;
      worst.value = growth;
    }
    const std::string phases = absl::StrCat(limit.from, "..", limit.to);
    if (!passed_both) {
      result->missing_evidence.push_back(
          absl::StrCat("--max-growth ", limit.program, limit.program.empty() ? "" : "=", phases,
                       ": no ", limit.program.empty() ? "process" : "process of it",
                       " has these phases or marks, in this order"));
    }
    if (worst.processes == 0) continue;
    worst.what = GateExcess::What::kGrowth;
    worst.limit = limit.most;
    worst.phases = phases;
    result->excesses.push_back(worst);
  }
}

// A limit of a program that did not run holds nothing: its name may be misspelt.
void NoteUnusedLimits(absl::string_view option, const std::vector<Limit>& limits,
                      const std::set<std::string>& names, std::vector<std::string>* notes) {
  for (const Limit& limit : limits) {
    if (limit.program.empty() || names.contains(limit.program)) continue;
    notes->push_back(
        absl::StrCat(option, " ", limit.program, "=...: no process of that name was looked at"));
  }
}

int Severity(LeakKind kind) { return static_cast<int>(kind); }

// One call of Judge(): its steps, in the order in which Run() takes them, and what they hand on.
class Judging {
 public:
  Judging(const GateInput& input, const render::ReportView& names, const GatePolicy& policy,
          const Baseline& baseline, Suppressions* suppressions)
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
    FindFixed();
    CheckLimits();
    ConcludeOutcome();
    return std::move(result_);
  }

 private:
  // Which processes count, of what there is no evidence, and what was live at their ends.
  void CountProcesses();
  // What the reader should know: the input's notes, limits that hold nothing, then those
  // of scans and symbols.
  void CollectNotes();
  // Losses become leaks: those of one program, kind and fingerprint are added up,
  // suppressed ones apart.
  void SumLosses();
  // Each leak gets its verdict; those that fail the gate come first.
  void JudgeLeaks();
  // What the baseline knows and no process had any more.
  void FindFixed();
  // What is beyond a limit of the policy.
  void CheckLimits();
  // The verdict on all of it.
  void ConcludeOutcome();

  const GateInput& input_;
  const render::ReportView& names_;
  const GatePolicy& policy_;
  const Baseline& baseline_;
  Suppressions* const suppressions_;
  StackFacts facts_;
  std::set<std::string> programs_;  // of the processes that count
  std::set<std::string> names_of_programs_;  // and what they were called as
  std::set<std::string> notes_;     // of these, and of the symbols: each once
  std::map<std::tuple<std::string, LeakKind, std::string>, Sum> sums_;
  // By program and fingerprint.
  std::map<std::pair<std::string, std::string>, MostOfAProcess> lost_;
  std::vector<uint64_t> leaked_;  // for --max-leaked, by process
  GateResult result_;
};

void Judging::CountProcesses() {
  result_.processes = input_.processes.size();
  for (const GateInput::Unreadable& one : input_.unreadable) {
    result_.missing_evidence.push_back(
        one.file.empty() ? one.why : absl::StrCat(one.file, ": ", one.why));
  }
  for (const GateProcess& process : input_.processes) {
    result_.replaced += process.replaced;
    if (!process.no_evidence.empty()) {
      result_.missing_evidence.push_back(absl::StrCat(process.file, ": ", process.no_evidence));
      continue;
    }
    if (!process.not_seen.empty()) {
      result_.missing_evidence.push_back(absl::StrCat(process.file, ": ", process.not_seen));
    }
    // One that became another program shows its peak, and nothing of what it would have freed.
    const bool of_leaks = policy_.needs_scan() || policy_.looks_at_unfreed();
    const bool was_looked_at = !process.replaced || process.scanned || !of_leaks;
    result_.usable += was_looked_at;
    if (was_looked_at) {
      programs_.insert(process.program);
      names_of_programs_.insert(process.program);
      names_of_programs_.insert(process.called_as);
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
}

void Judging::CollectNotes() {
  result_.notes = input_.notes;
  for (const std::string& note : names_.symbols().notes()) notes_.insert(note);
  NoteUnusedLimits("--max-leaked", policy_.max_leaked, names_of_programs_, &result_.notes);
  NoteUnusedLimits("--max-peak", policy_.max_peak, names_of_programs_, &result_.notes);
  NoteUnusedLimits("--max-allocations", policy_.max_allocations, names_of_programs_,
                   &result_.notes);
  NoteUnusedLimits("--max-invalid-frees", policy_.max_invalid_frees, names_of_programs_,
                   &result_.notes);
  NoteUnusedLimits("--max-mismatched-frees", policy_.max_mismatched_frees, names_of_programs_,
                   &result_.notes);
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
    if (Suppression* suppression = facts_.SuppressionOf(loss)) {
      ++suppression->records;
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
    sum.leak.has_budget &= HasBudget(policy_, process);
    if (loss.kind == LeakKind::kDefinite || loss.kind == LeakKind::kIndirect) {
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
    leak.verdict = VerdictOf(&leak, policy_, baseline_);
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
}

void Judging::FindFixed() {
  for (const BaselineEntry& entry : baseline_.entries()) {
    if (!policy_.fail_on.Has(entry.kind)) continue;
    // Of any program: some other may still have it.
    const bool looked_for = programs_.contains(entry.program);
    const bool found =
        std::any_of(result_.leaks.begin(), result_.leaks.end(), [&](const GateLeak& leak) {
          return leak.kind == entry.kind && leak.fingerprint == entry.fingerprint &&
                 leak.program == entry.program;
        });
    // Without names a leak has another fingerprint: it may be there.
    const bool has_nameless =
        std::any_of(result_.leaks.begin(), result_.leaks.end(), [&](const GateLeak& leak) {
          return leak.program == entry.program && !names_.NamelessModule(leak.stack).empty();
        });
    if (looked_for && !found && !has_nameless) result_.fixed.push_back(entry);
  }
}

void Judging::CheckLimits() {
  Excesses excesses(input_, &result_.excesses);
  excesses.Check(GateExcess::What::kLeaked, policy_.max_leaked,
                 [&](size_t i) { return leaked_[i]; });
  excesses.Check(GateExcess::What::kPeak, policy_.max_peak,
                 [&](size_t i) { return input_.processes[i].peak_bytes; });
  excesses.Check(GateExcess::What::kAllocations, policy_.max_allocations,
                 [&](size_t i) { return input_.processes[i].allocations; });
  CheckGrowth(input_, policy_, &result_);
  const WrongFrees frees(input_, names_, suppressions_);
  excesses.CheckOfAny(GateExcess::What::kInvalidFrees, policy_.max_invalid_frees,
                      [&](size_t i) { return frees.of(i).invalid.times; },
                      [&](size_t i) { return frees.of(i).invalid.places; });
  excesses.CheckOfAny(GateExcess::What::kMismatchedFrees, policy_.max_mismatched_frees,
                      [&](size_t i) { return frees.of(i).mismatched.times; },
                      [&](size_t i) { return frees.of(i).mismatched.places; });
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

absl::string_view ExcessName(GateExcess::What what) {
  switch (what) {
    case GateExcess::What::kLeaked: return "leaked";
    case GateExcess::What::kPeak: return "peak";
    case GateExcess::What::kAllocations: return "allocations";
    case GateExcess::What::kGrowth: return "growth";
    case GateExcess::What::kInvalidFrees: return "invalid-frees";
    case GateExcess::What::kMismatchedFrees: return "mismatched-frees";
  }
  return "";
}

std::string ExcessText(const GateExcess& excess) {
  // Two that round to the same are told exactly.
  const bool alike =
      render::ExactOrHumanBytes(excess.value) == render::ExactOrHumanBytes(excess.limit);
  const auto bytes = [alike](uint64_t n) {
    return alike ? render::ExactBytes(n) : render::ExactOrHumanBytes(n);
  };
  std::string text;
  switch (excess.what) {
    case GateExcess::What::kLeaked:
      text = absl::StrCat("leaked ", bytes(excess.value), ", at most ", bytes(excess.limit));
      break;
    case GateExcess::What::kPeak:
      text = absl::StrCat("peak of ", bytes(excess.value), ", at most ", bytes(excess.limit));
      break;
    case GateExcess::What::kAllocations:
      text = absl::StrCat(render::Count(excess.value), " allocations, at most ",
                          render::Count(excess.limit));
      break;
    case GateExcess::What::kGrowth:
      text = absl::StrCat("grew by ", bytes(excess.value), " in ", excess.phases, ", at most ",
                          bytes(excess.limit));
      break;
    case GateExcess::What::kInvalidFrees:
      text = absl::StrCat(render::Plural(excess.value, "invalid free"), ", at most ",
                          render::Count(excess.limit));
      break;
    case GateExcess::What::kMismatchedFrees:
      text = absl::StrCat(render::Plural(excess.value, "mismatched free"), ", at most ",
                          render::Count(excess.limit));
      break;
  }
  if (excess.processes > 1) {
    absl::StrAppend(&text, " (and ", excess.processes - 1, " more)");
  }
  return text;
}

absl::string_view OutcomeName(GateResult::Outcome outcome) {
  switch (outcome) {
    case GateResult::Outcome::kClean: return "clean";
    case GateResult::Outcome::kGated: return "failed";
    case GateResult::Outcome::kNoEvidence: return "no evidence";
  }
  return "";
}

GateResult Judge(const GateInput& input, const render::ReportView& names,
                 const GatePolicy& policy, const Baseline& baseline, Suppressions* suppressions) {
  return Judging(input, names, policy, baseline, suppressions).Run();
}

}  // namespace memtrace::report::gate
