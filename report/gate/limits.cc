#include "report/gate/limits.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/words/units.h"

namespace memtrace::report::gate {
namespace {

// Whether the limit is for this process: a general one only where none of `all` names it.
bool HoldsFor(const Limit& limit, const std::vector<Limit>& all, const GateProcess& process) {
  if (!limit.program.empty()) return process.IsNamed(limit.program);
  return std::none_of(all.begin(), all.end(), [&](const Limit& other) {
    return !other.program.empty() && process.IsNamed(other.program);
  });
}

// The names of the limit of which it is not known whether the process has them. One that is known
// as a phase or as a mark stands for that.
std::vector<std::string> UnknownNames(const GateProcess& process, const GrowthLimit& limit) {
  std::vector<std::string> unknown;
  if (!process.has_other_phases && !process.has_other_marks) return unknown;
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(process.phases,
                               [&](const PhaseMark& mark) { return mark.name == name; });
  };
  if (!has(limit.from)) unknown.push_back(limit.from);
  if (limit.to != limit.from && !has(limit.to)) unknown.push_back(limit.to);
  return unknown;
}

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

std::string WhyUnknown(const GateProcess& process, const std::vector<std::string>& names) {
  std::vector<absl::string_view> others;
  if (process.has_other_phases) others.push_back("phases");
  if (process.has_other_marks) others.push_back("marks");
  return absl::StrCat("whether ", process.program, " (", process.pid, ") came to ",
                      absl::StrJoin(names, " and "), " is not known: it gave its ",
                      absl::StrJoin(others, " and "), " more names than are told apart");
}

// The same; limits of other phases have nothing to do with it.
bool HoldsFor(const GrowthLimit& limit, const std::vector<GrowthLimit>& all,
              const GateProcess& process) {
  if (!limit.program.empty()) return process.IsNamed(limit.program);
  return std::none_of(all.begin(), all.end(), [&](const GrowthLimit& other) {
    return !other.program.empty() && process.IsNamed(other.program) && other.from == limit.from &&
           other.to == limit.to;
  });
}

// Which processes are beyond one limit; the one that is furthest stands for them.
class Worst {
 public:
  Worst(GateExcess::What what, uint64_t limit) {
    excess_.what = what;
    excess_.limit = limit;
  }

  // True: it is the furthest so far, and excess() may be told more of it.
  bool Add(const GateProcess& process, uint64_t value) {
    if (value <= excess_.limit) return false;
    ++excess_.processes;
    if (value < excess_.value) return false;
    excess_.program = process.program;
    excess_.file = process.file;
    excess_.pid = process.pid;
    excess_.working_directory = process.working_directory;
    excess_.value = value;
    return true;
  }

  GateExcess& excess() { return excess_; }

  void AddTo(std::vector<GateExcess>* all) const {
    if (excess_.processes != 0) all->push_back(excess_);
  }

 private:
  GateExcess excess_;
};

// One call of FindExcesses().
class Finder {
 public:
  Finder(const GateInput& input, std::vector<GateExcess>* out, std::vector<std::string>* missing)
      : input_(input), out_(out), missing_(missing) {}

  // A value of each process of which there is evidence.
  void Check(GateExcess::What what, const std::vector<Limit>& limits,
             const std::function<uint64_t(size_t)>& value_of) {
    MissUnused(what, limits);
    for (const Limit& limit : limits) {
      Worst worst(what, limit.most);
      ForEach(limit, limits, [&](size_t i, const GateProcess& process) {
        if (process.no_evidence.empty()) worst.Add(process, value_of(i));
      });
      worst.AddTo(out_);
    }
  }

  // Frees are certain of any process.
  void CheckFrees(GateExcess::What what, const std::vector<Limit>& limits,
                  const std::function<const WrongFrees::Kind&(size_t)>& frees_of) {
    MissUnused(what, limits);
    for (const Limit& limit : limits) {
      Worst worst(what, limit.most);
      ForEach(limit, limits, [&](size_t i, const GateProcess& process) {
        const WrongFrees::Kind& frees = frees_of(i);
        if (!worst.Add(process, frees.times)) return;
        worst.excess().frees = frees.places;
        worst.excess().stacks = frees.stacks;
      });
      worst.AddTo(out_);
    }
  }

  void CheckGrowth(const std::vector<GrowthLimit>& limits) {
    for (const GrowthLimit& limit : limits) {
      Worst worst(GateExcess::What::kGrowth, limit.most);
      worst.excess().phases = absl::StrCat(limit.from, "..", limit.to);
      bool may_have_passed_both = false;
      std::string why_unknown;  // of the first process
      uint64_t unknown = 0;     // processes
      for (const GateProcess& process : input_.processes) {
        uint64_t growth = 0;
        if (!process.no_evidence.empty()) continue;
        const std::vector<std::string> names = UnknownNames(process, limit);
        if (names.empty() && !GrowthOf(process, limit, &growth)) continue;
        may_have_passed_both |= limit.program.empty() || process.IsNamed(limit.program);
        if (!HoldsFor(limit, limits, process)) continue;
        if (names.empty()) {
          worst.Add(process, growth);
        } else if (unknown++ == 0) {
          why_unknown = WhyUnknown(process, names);
        }
      }
      const std::string option =
          absl::StrCat("--max-growth ", limit.program, limit.program.empty() ? "" : "=",
                       worst.excess().phases, ": ");
      if (unknown != 0) {
        missing_->push_back(absl::StrCat(
            option, why_unknown, unknown > 1 ? absl::StrCat(" (and ", unknown - 1, " more)") : ""));
      } else if (!may_have_passed_both) {
        missing_->push_back(absl::StrCat(
            option, "no ", limit.program.empty() ? "process" : "process of it",
            " has these phases or marks, in this order"));
      }
      worst.AddTo(out_);
    }
  }

 private:
  // A limit of a program that did not run says nothing of it: its name may have changed, or be
  // misspelt. One that ran, and of which there is no evidence, is missed by itself.
  void MissUnused(GateExcess::What what, const std::vector<Limit>& limits) {
    std::set<std::string> missed;
    for (const Limit& limit : limits) {
      const bool is_used =
          limit.program.empty() ||
          std::ranges::any_of(input_.processes, [&](const GateProcess& process) {
            return process.IsNamed(limit.program) &&
                   (what != GateExcess::What::kLeaked || process.had_its_heap());
          });
      if (is_used || !missed.insert(limit.program).second) continue;
      missing_->push_back(absl::StrCat("--max-", ExcessName(what), " ", limit.program,
                                       "=...: no process of that name was looked at"));
    }
  }

  template <typename Function>
  void ForEach(const Limit& limit, const std::vector<Limit>& all, Function function) {
    for (size_t i = 0; i < input_.processes.size(); ++i) {
      const GateProcess& process = input_.processes[i];
      if (HoldsFor(limit, all, process)) function(i, process);
    }
  }

  const GateInput& input_;
  std::vector<GateExcess>* const out_;
  std::vector<std::string>* const missing_;
};

}  // namespace

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
      words::ExactOrHumanBytes(excess.value) == words::ExactOrHumanBytes(excess.limit);
  const auto bytes = [alike](uint64_t n) {
    return alike ? words::ExactBytes(n) : words::ExactOrHumanBytes(n);
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
      text = absl::StrCat(words::Count(excess.value), " allocations, at most ",
                          words::Count(excess.limit));
      break;
    case GateExcess::What::kGrowth:
      text = absl::StrCat("grew by ", bytes(excess.value), " in ", excess.phases, ", at most ",
                          bytes(excess.limit));
      break;
    case GateExcess::What::kInvalidFrees:
      text = absl::StrCat(words::Plural(excess.value, "invalid free"), ", at most ",
                          words::Count(excess.limit));
      break;
    case GateExcess::What::kMismatchedFrees:
      text = absl::StrCat(words::Plural(excess.value, "mismatched free"), ", at most ",
                          words::Count(excess.limit));
      break;
  }
  if (excess.processes > 1) {
    absl::StrAppend(&text, " (and ", excess.processes - 1, " more)");
  }
  return text;
}

std::vector<GateExcess> FindExcesses(const GateInput& input, const GatePolicy& policy,
                                     const std::vector<uint64_t>& leaked, const WrongFrees& frees,
                                     std::vector<std::string>* missing) {
  using What = GateExcess::What;
  const std::vector<GateProcess>& processes = input.processes;
  std::vector<GateExcess> excesses;
  Finder finder(input, &excesses, missing);
  finder.Check(What::kLeaked, policy.max_leaked, [&](size_t i) { return leaked[i]; });
  finder.Check(What::kPeak, policy.max_peak, [&](size_t i) { return processes[i].peak_bytes; });
  finder.Check(What::kAllocations, policy.max_allocations,
               [&](size_t i) { return processes[i].allocations; });
  finder.CheckGrowth(policy.max_growth);
  finder.CheckFrees(What::kInvalidFrees, policy.max_invalid_frees,
                    [&](size_t i) -> const auto& { return frees.of(i).invalid; });
  finder.CheckFrees(What::kMismatchedFrees, policy.max_mismatched_frees,
                    [&](size_t i) -> const auto& { return frees.of(i).mismatched; });
  return excesses;
}

bool IsLimited(const std::vector<Limit>& limits, const GateProcess& process) {
  return std::any_of(limits.begin(), limits.end(), [&](const Limit& limit) {
    return limit.program.empty() || process.IsNamed(limit.program);
  });
}

}  // namespace memtrace::report::gate
