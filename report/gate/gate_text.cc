// What is printed on the log of a build: the verdict, then what it is about, on 80 columns.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/gate/formats.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/names/frames_filter.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::gate {
namespace {

constexpr size_t kFramesShown = 8;
constexpr size_t kInnerShown = 3;  // of those, when the project's first is further out
constexpr size_t kLinesOfAList = 10;
constexpr size_t kPlacesShown = 4;

class Text {
 public:
  explicit Text(const GateReport& report) : report_(report), result_(*report.result) {}

  std::string Render() {
    Line(absl::StrCat("memtrace check: ", absl::AsciiStrToUpper(std::string(
                          OutcomeName(result_.outcome))),
                      VerdictLine(report_).substr(OutcomeName(result_.outcome).size())));
    Line(absl::StrCat(
        "  ", Processes(result_.usable), " of ", words::Plural(result_.programs.size(), "program"),
        " looked at; fails on ", KindNames(result_.policy.fail_on),
        report_.baseline.empty() ? "" : absl::StrCat("; baseline ", report_.baseline)));
    if (result_.other_processes > 0) {
      Line(absl::StrCat("  ", Processes(result_.other_processes), " of ",
                        words::Plural(result_.other_programs, "other program"), " not judged"));
    }
    if (result_.frees_unseen && result_.policy.needs_scan()) {
      Line("  some frees are not seen: what is definitely lost may have been freed there");
    }
    Evidence();
    Limits();
    Leaks();
    Fixed();
    Totals();
    SuppressionUse();
    List("note", result_.notes);
    return std::move(out_);
  }

 private:
  void Line(absl::string_view text) {
    absl::StrAppend(&out_, words::EscapeControls(text), "\n");
  }

  void List(absl::string_view word, const std::vector<std::string>& items) {
    if (items.empty()) return;
    Line("");
    const size_t shown = report_.full ? items.size() : std::min(items.size(), kLinesOfAList);
    for (size_t i = 0; i < shown; ++i) {
      Line(word.empty() ? items[i] : absl::StrCat(word, ": ", items[i]));
    }
    if (shown < items.size()) Line(absl::StrCat("and ", items.size() - shown, " more: --full"));
  }

  void Evidence() {
    List("no evidence", report_.full ? MissingParts(result_) : MissingPartsInBrief(result_));
    if (result_.missing_evidence.empty()) return;
    if (result_.policy.missing_evidence_fails) {
      if (IsOfKilledAlone()) {
        Line("(if that is meant, as in death tests: --missing-evidence report does not fail)");
      }
      return;
    }
    Line(result_.usable == 0
             ? "(--missing-evidence report: this would not fail, but no process proves anything)"
             : "(--missing-evidence report: this does not fail)");
  }

  // Nothing fails but that processes were killed.
  bool IsOfKilledAlone() const {
    return result_.usable > 0 && result_.outcome == GateResult::Outcome::kNoEvidence &&
           std::ranges::all_of(result_.missing_evidence,
                               [](const MissingPart& part) { return part.was_killed; });
  }

  void Limits() {
    std::vector<std::string> items;
    std::string how;
    for (const GateExcess& excess : result_.excesses) {
      items.push_back(absl::StrCat(excess.program, ": ", ExcessText(excess), "  ", excess.file));
      for (const std::string& place : FreePlaces(report_, excess)) {
        items.push_back(absl::StrCat("  ", place));
      }
      if (how.empty()) how = HowToSeeFrees(excess);
    }
    List("limit", items);
    for (const std::string& line : words::Wrapped(how, report_.style.width)) Line(line);
  }

  void Leaks() {
    size_t shown = 0, hidden = 0;
    for (const GateLeak& leak : result_.leaks) {
      const bool lost = leak.kind == LeakKind::kDefinite || leak.kind == LeakKind::kPossible;
      // Leaks that are accepted, or not asked about, are in the totals; --full shows some
      // of them here as well.
      if (!IsGated(leak.verdict) && leak.verdict != Verdict::kBudget &&
          !(report_.full && (lost || leak.verdict == Verdict::kWithin))) {
        continue;
      }
      if (!report_.full && shown == report_.top) {
        ++hidden;
        continue;
      }
      ++shown;
      Leak(leak);
    }
    if (hidden > 0) {
      Line("");
      Line(absl::StrCat("and ", words::Plural(hidden, "more leak"), ": --top ", shown + hidden,
                        " or --full"));
    }
  }

  void Leak(const GateLeak& leak) {
    Line("");
    Line(absl::StrCat(leak::AmountText(leak.total), " ", KindPhrase(leak.kind), "  [", leak.program,
                      leak.processes > 1 ? absl::StrCat(", ", Processes(leak.processes)) : "",
                      "]"));
    const std::string verdict = VerdictSentence(report_, leak);
    if (!verdict.empty()) Line(absl::StrCat("  ", verdict));
    if (leak.indirect.blocks > 0) {
      Line(absl::StrCat("  and ", leak::AmountText(leak.indirect), " that only these lead to"));
    }
    Line(absl::StrCat("  ", render::AllocationName(*report_.names, leak.stack, leak.function),
                      ", fingerprint ", leak.fingerprint,
                      leak.stacks > 1 ? absl::StrCat(", ", leak.stacks, " stacks") : ""));
    Places(leak);
    const std::vector<const Frame*> frames = report_.names->Frames(leak.stack);
    const std::vector<std::string> lines = StackLines(report_, leak);
    const names::Cut cut = frames.empty() ? names::Cut() : names::CutStack(frames);
    const size_t caller = cut.caller - cut.via;
    size_t most = report_.full ? lines.size() : kFramesShown;
    size_t begin = 0;
    // The project's first frame is what the reader looks for, and what it called. What allocates is
    // further in, and may be all that tells one leak from another.
    if (caller + 1 > most) {
      for (; begin < kInnerShown; ++begin) StackLine(lines[begin]);
      Line(absl::StrCat("    (", words::Plural(caller - 1 - begin, "more frame"),
                        " of the system: --full)"));
      begin = caller - 1;
      most -= kInnerShown;
    }
    for (size_t i = begin; i < lines.size() && i < begin + most; ++i) StackLine(lines[i]);
    if (begin + most < lines.size()) {
      Line(absl::StrCat("    (", words::Plural(lines.size() - begin - most, "more frame"),
                        ": --full)"));
    }
  }

  void StackLine(const std::string& text) {
    const size_t room = report_.style.width - 4;
    const std::string line = words::EscapeControls(text);
    const size_t gap = line.rfind("  ");
    if (report_.full || words::FitsWidth(line, room) || gap == line.npos) {
      absl::StrAppend(&out_, "    ", line, "\n");
      return;
    }
    // The place matters more than the end of a long C++ name.
    const std::string place = words::KeepEnd(line.substr(gap + 2), room / 2, "...");
    absl::StrAppend(
        &out_, "    ",
        words::KeepBeginning(line.substr(0, gap), room - 2 - words::DisplayWidth(place), "..."),
        "  ", place, "\n");
  }

  // Where it is more than one line that leaks, the stack below is of the first.
  void Places(const GateLeak& leak) {
    const auto places = LeakPlaces(report_, leak);
    if (places.size() < 2) return;
    const size_t shown = report_.full ? places.size() : std::min(places.size(), kPlacesShown);
    for (size_t i = 0; i < shown; ++i) {
      const std::string amount = absl::StrCat("  ", leak::AmountText(places[i].second), " at ");
      const size_t room =
          report_.style.width > amount.size() + 20 ? report_.style.width - amount.size() : 20;
      const std::string place = words::EscapeControls(places[i].first);
      Line(absl::StrCat(amount, report_.full ? place : words::KeepEnd(place, room, "...")));
    }
    if (shown < places.size())
      Line(absl::StrCat("  and ", places.size() - shown, " more places: --full"));
  }

  void Fixed() {
    std::vector<std::string> items;
    bool surely = true;
    for (const BaselineEntry& entry : result_.fixed) {
      surely &= !report_.unfinished.contains(entry.program);
      items.push_back(EntryText(entry));
    }
    List("fixed", items);
    if (!items.empty()) {
      Line(surely ? "These are gone: --update-baseline takes them out."
                  : "These may be gone, or what failed did not come to them.");
    }
    items.clear();
    for (const auto& [entry, by] : result_.suppressed_entries) {
      items.push_back(absl::StrCat(
          "suppressed now by ", by->file.empty() ? by->name : absl::StrCat(by->file, ":", by->line),
          ": ", EntryText(entry)));
    }
    List("", items);
    if (!items.empty()) {
      Line("These are still there: their lines stay. Is the suppression too wide?");
    }
    NotRun();
    if (report_.baseline_changes.empty()) return;
    Line("");
    Line(absl::StrCat("Baseline ", report_.baseline, ": ", report_.baseline_changes));
  }

  // known:5: definite 3f2a9c00deadbeef Load  cache.c
  std::string EntryText(const BaselineEntry& entry) const {
    return absl::StrCat(report_.baseline, ":", entry.line, ": ", KindName(entry.kind), " ",
                        entry.fingerprint, " ", entry.caller);
  }

  // Perhaps they have another name now, and nobody would see that their lines hold for nothing.
  void NotRun() {
    if (result_.not_run.empty()) return;
    std::set<std::string> programs;
    for (const BaselineEntry& entry : result_.not_run) programs.insert(entry.program);
    const size_t entries = result_.not_run.size();
    std::string line = absl::StrCat(
        entries == 1 ? "1 entry" : absl::StrCat(words::Count(entries), " entries"), " of ",
        programs.size() == 1 ? "a program that was" : "programs that were", " not seen to run: ");
    constexpr size_t kRoomForMore = sizeof(", and 99 more") - 1;
    size_t named = 0;
    for (const std::string& program : programs) {
      const std::string name = words::EscapeControls(program);
      const std::string next = absl::StrCat(line, named == 0 ? "" : ", ", name);
      if (named > 0 && !report_.full &&
          !words::FitsWidth(next, report_.style.width - kRoomForMore)) {
        break;
      }
      line = next;
      ++named;
    }
    Line("");
    Line(named == programs.size()
             ? line
             : absl::StrCat(line, ", and ", programs.size() - named, " more"));
  }

  void Totals() {
    if (result_.usable == 0) return;
    Line("");
    const auto row = [&](absl::string_view name, const LeakAmount& amount) {
      Line(absl::StrFormat("  %-17s %s", name, leak::AmountText(amount)));
    };
    if (result_.policy.needs_scan()) {
      for (const LeakKind kind :
           {LeakKind::kDefinite, LeakKind::kIndirect, LeakKind::kPossible, LeakKind::kReachable}) {
        row(KindPhrase(kind), result_.totals[static_cast<size_t>(kind)]);
      }
    } else {
      row(KindPhrase(LeakKind::kUnfreed),
          result_.totals[static_cast<size_t>(LeakKind::kUnfreed)]);
    }
    if (result_.suppressed.blocks > 0) row("suppressed", result_.suppressed);
  }

  void SuppressionUse() {
    std::vector<std::string> used, unused;
    // Of the runtime several have one name, which is told once.
    std::vector<suppress::Suppression> rules;
    for (const suppress::Suppression& one : report_.suppressions->all()) {
      const auto same =
          std::find_if(rules.begin(), rules.end(), [&one](const suppress::Suppression& rule) {
            return rule.built_in && one.built_in && rule.name == one.name &&
                   rule.of_frees == one.of_frees;
          });
      if (same == rules.end()) {
        rules.push_back(one);
        continue;
      }
      same->records += one.records;
      same->blocks += one.blocks;
      same->bytes += one.bytes;
    }
    for (const suppress::Suppression& one : rules) {
      if (one.records > 0) {
        const std::string what = one.of_frees ? words::Plural(one.records, "wrong free")
                                              : leak::AmountText({one.bytes, one.blocks});
        used.push_back(Named(absl::StrCat("suppressed: ", what, "  "), one));
      } else if (!one.file.empty() && !one.of_frees) {  // a file is shared with Valgrind's runs
        unused.push_back(Named("unused suppression: ", one));
      }
    }
    List("", used);
    List("", unused);
  }

  // Whole, as notes are: half a name finds no suppression in a file.
  static std::string Named(absl::string_view before, const suppress::Suppression& one) {
    return absl::StrCat(before, one.name,
                        one.file.empty() ? "" : absl::StrCat("  ", one.file, ":", one.line));
  }

  const GateReport& report_;
  const GateResult& result_;
  std::string out_;
};

}  // namespace

std::string RenderGateText(const GateReport& report) { return Text(report).Render(); }

}  // namespace memtrace::report::gate
