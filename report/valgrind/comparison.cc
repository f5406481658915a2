#include "report/valgrind/comparison.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/leak/leak_kinds.h"
#include "report/valgrind/difference_reasons.h"
#include "report/valgrind/glib_under_valgrind.h"
#include "report/words/units.h"

namespace memtrace::report::valgrind {
namespace {

using render::Loss;
using render::LossList;

// Losses of both sides that are taken for one leak.
struct Group {
  std::vector<const Loss*> here, there;
  bool paired() const { return !here.empty() && !there.empty(); }
};

// Frames that count follow: not those behind the start of the program or of a thread.
bool IsCut(const Loss& loss) { return loss.cut && WordsOf(loss, MatchStage::kLines).cut; }

std::string Key(const std::vector<std::string>& words, size_t length) {
  return absl::StrJoin(words.begin(), words.begin() + static_cast<ptrdiff_t>(length), "\n");
}

// One stage of the pairing.
class Pairing {
 public:
  Pairing(std::vector<const Loss*> here, std::vector<const Loss*> there, MatchStage stage)
      : stage_(stage) {
    for (const Loss* loss : here) Add(loss, true);
    for (const Loss* loss : there) Add(loss, false);
    // A stack that was cut is the beginning of one on the other side.
    JoinCut(false);
    JoinCut(true);
  }

  // Pairs, and what found none.
  std::vector<Group> Take(std::vector<const Loss*>* here, std::vector<const Loss*>* there) {
    std::vector<Group> pairs;
    for (Entry& entry : entries_) {
      if (entry.group.paired()) {
        pairs.push_back(std::move(entry.group));
        continue;
      }
      here->insert(here->end(), entry.group.here.begin(), entry.group.here.end());
      there->insert(there->end(), entry.group.there.begin(), entry.group.there.end());
    }
    here->insert(here->end(), no_words_here_.begin(), no_words_here_.end());
    there->insert(there->end(), no_words_there_.begin(), no_words_there_.end());
    return pairs;
  }

 private:
  struct Entry {
    std::vector<std::string> words;
    bool cut = false;
    Group group;
  };

  void Add(const Loss* loss, bool is_here) {
    StackWords stack = WordsOf(*loss, stage_);
    // By the project's own functions alone, what a runtime keeps would be joined with the block
    // that the same function allocated.
    const bool is_runtimes = stage_ == MatchStage::kProject && IsOfARuntime(loss->stack);
    if (is_runtimes || (stack.words.empty() && stage_ != MatchStage::kLines)) {
      (is_here ? no_words_here_ : no_words_there_).push_back(loss);
      return;
    }
    const auto [at, is_new] =
        by_key_.try_emplace(Key(stack.words, stack.words.size()), entries_.size());
    if (is_new) entries_.push_back({std::move(stack.words), false, {}});
    Entry& entry = entries_[at->second];
    entry.cut |= stack.cut;
    (is_here ? entry.group.here : entry.group.there).push_back(loss);
  }

  void JoinCut(bool cut_here) {
    absl::flat_hash_map<std::string, size_t> cut;
    std::set<size_t> lengths;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      const auto& own = cut_here ? entry.group.here : entry.group.there;
      if (!entry.cut || own.empty() || entry.words.empty()) continue;
      cut[Key(entry.words, entry.words.size())] = i;
      lengths.insert(entry.words.size());
    }
    if (lengths.size() > kMostLengths) return;  // nothing that Valgrind writes
    for (Entry& entry : entries_) {
      if (entry.group.paired()) continue;
      auto& others = cut_here ? entry.group.there : entry.group.here;
      if (others.empty()) continue;
      // The longest beginning is the likeliest.
      for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
        if (*length >= entry.words.size()) continue;
        const auto at = cut.find(Key(entry.words, *length));
        if (at == cut.end()) continue;
        Group& group = entries_[at->second].group;
        auto& into = cut_here ? group.there : group.here;
        into.insert(into.end(), others.begin(), others.end());
        others.clear();
        break;
      }
    }
  }

  static constexpr size_t kMostLengths = 600;

  const MatchStage stage_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> by_key_;
  std::vector<const Loss*> no_words_here_, no_words_there_;
};

constexpr MatchStage kStages[] = {MatchStage::kLines,     MatchStage::kCalls, MatchStage::kPlaces,
                                  MatchStage::kFunctions, MatchStage::kFiles, MatchStage::kProject};

// Losses there that no site here is paired with, though the trace has every allocation of a fork
// child's: they are of blocks that it inherited.
absl::flat_hash_set<const Loss*> Inherited(const Analysis& analysis,
                                           const std::vector<Loss>& allocated,
                                           const ValgrindRun& there) {
  if (!analysis.process.forked || !HasEveryAllocation(analysis)) return {};
  std::vector<const Loss*> sites, losses;
  for (const Loss& site : allocated) {
    if (IsCut(site) && WordsOf(site, MatchStage::kLines).words.empty()) return {};  // it may be any
    sites.push_back(&site);
  }
  for (const Loss& loss : there.losses) {
    // Of a library that was unloaded there are no names: what is called so here is not known.
    const bool is_named = std::ranges::none_of(loss.stack, [](const auto& frame) {
      return frame.function.empty() && frame.object.empty();
    });
    if (is_named && !WordsOf(loss, MatchStage::kLines).words.empty()) losses.push_back(&loss);
  }
  for (const MatchStage stage : kStages) {
    Pairing(std::exchange(sites, {}), std::exchange(losses, {}), stage).Take(&sites, &losses);
  }
  // In another build of a program without names the same sites lie elsewhere.
  Pairing(std::exchange(sites, {}), std::exchange(losses, {}), MatchStage::kShape)
      .Take(&sites, &losses);
  return {losses.begin(), losses.end()};
}

// Of losses that found no pair: those whose stack would be one of the other side's, were the calls
// in code without names not told apart.
absl::flat_hash_set<const Loss*> SameShapes(std::vector<const Loss*> here,
                                            std::vector<const Loss*> there) {
  absl::flat_hash_set<const Loss*> same;
  std::vector<const Loss*> rest_here, rest_there;
  Pairing pairing(std::move(here), std::move(there), MatchStage::kShape);
  for (const Group& group : pairing.Take(&rest_here, &rest_there)) {
    same.insert(group.here.begin(), group.here.end());
    same.insert(group.there.begin(), group.there.end());
  }
  return same;
}

// Losses there of blocks that GLib told Valgrind of, each with those here of the blocks around
// them. What found no pair stays.
std::vector<Group> TakeDeclaredByGLib(std::vector<const Loss*>* here,
                                      std::vector<const Loss*>* there, MatchStage stage) {
  const auto taken = std::stable_partition(there->begin(), there->end(), [](const Loss* loss) {
    return !IsDeclaredByGLib(*loss);
  });
  std::vector<const Loss*> declared(taken, there->end());
  if (declared.empty()) return {};
  there->erase(taken, there->end());
  std::vector<const Loss*> rest_here, candidates;
  std::deque<Loss> without_malloc;
  absl::flat_hash_map<const Loss*, const Loss*> original;
  for (const Loss* loss : *here) {
    std::vector<render::LossFrame> stack = InGLibWithoutMalloc(*loss);
    if (stack.empty()) {
      rest_here.push_back(loss);
      continue;
    }
    Loss& copy = without_malloc.emplace_back(*loss);
    copy.stack = std::move(stack);
    original[&copy] = loss;
    candidates.push_back(&copy);
  }
  std::vector<const Loss*> left;
  std::vector<Group> groups =
      Pairing(std::move(candidates), std::move(declared), stage).Take(&left, there);
  for (Group& group : groups) {
    for (const Loss*& loss : group.here) loss = original.at(loss);
  }
  for (const Loss* loss : left) rest_here.push_back(original.at(loss));
  *here = std::move(rest_here);
  return groups;
}

Verdict Judge(const ComparedLeak& leak, bool scanned, LeakKindSet shown) {
  const LeakAmount here = leak.here.total(), there = leak.there.total();
  if (there.blocks == 0 && there.bytes == 0 && leak.there.records == 0) return Verdict::kOnlyHere;
  if (leak.here.records == 0) return Verdict::kOnlyThere;
  const bool same = here.bytes == there.bytes && here.blocks == there.blocks;
  if (!scanned) return same ? Verdict::kAgree : Verdict::kAmountDiffers;
  bool all = true;
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    if (!shown.Has(static_cast<LeakKind>(kind)) && leak.there.kinds[kind].blocks == 0) continue;
    all = all && leak.here.kinds[kind].bytes == leak.there.kinds[kind].bytes &&
          leak.here.kinds[kind].blocks == leak.there.kinds[kind].blocks;
  }
  if (all) return Verdict::kAgree;
  return same ? Verdict::kKindDiffers : Verdict::kAmountDiffers;
}

std::vector<std::string> NotesOn(const Analysis& analysis, const LossList& here,
                                 const ValgrindRun& there) {
  std::vector<std::string> notes;
  if (here.scan == nullptr) {
    std::string why;
    render::LastScan(analysis, &why);
    notes.push_back(absl::StrCat("here ", why,
                                 "; unfreed blocks are compared with Valgrind's of all "
                                 "kinds together"));
  } else {
    for (const std::string& note : render::RemarksOn(*here.scan))
      notes.push_back(absl::StrCat("here: ", note));
  }
  if (!there.damage.empty()) notes.push_back(absl::StrCat("there: ", there.damage));
  for (const std::string& note : there.notes) notes.push_back(absl::StrCat("there: ", note));
  if (there.shown != LeakKindSet::OfScans()) {
    notes.push_back(
        "there, only some kinds of leaks were asked for; --show-leak-kinds=all has them "
        "all");
  }
  if (there.other_errors > 0) {
    notes.push_back(absl::StrCat(there.other_errors == 1 ? "there is " : "there are ",
                                 words::Plural(there.other_errors, "error"),
                                 " other than leaks in the file of Valgrind's"));
  }
  return notes;
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAgree: return "agree";
    case Verdict::kKindDiffers: return "kind differs";
    case Verdict::kAmountDiffers: return "bytes or blocks differ";
    case Verdict::kOnlyHere: return "only here";
    case Verdict::kOnlyThere: return "only there";
  }
  return "";
}

absl::string_view StageName(MatchStage stage) {
  switch (stage) {
    case MatchStage::kNone: return "none";
    case MatchStage::kLines: return "lines";
    case MatchStage::kCalls: return "calls";
    case MatchStage::kPlaces: return "places";
    case MatchStage::kFunctions: return "functions";
    case MatchStage::kFiles: return "files";
    case MatchStage::kProject: return "project";
    case MatchStage::kShape: break;  // pairs nothing
  }
  return "";
}

LeakAmount LostOnASide::total() const {
  LeakAmount sum;
  for (const LeakAmount& amount : kinds) {
    sum.bytes += amount.bytes;
    sum.blocks += amount.blocks;
  }
  return sum;
}

void LostOnASide::Add(const Loss& loss) {
  LeakAmount& amount = kinds[static_cast<size_t>(loss.kind)];
  amount.bytes += loss.bytes;
  amount.blocks += loss.blocks;
  indirect_bytes += loss.indirect_bytes;
  ++records;
}

Comparison Compare(const Analysis& analysis, const LossList& here, const ValgrindRun& there,
                   const std::vector<Loss>& allocated) {
  Comparison comparison;
  comparison.scanned_here = here.scan != nullptr;
  comparison.notes = NotesOn(analysis, here, there);
  std::vector<const Loss*> rest_here, rest_there;
  for (const Loss& loss : here.losses) {
    comparison.here[static_cast<size_t>(loss.kind)].bytes += loss.bytes;
    comparison.here[static_cast<size_t>(loss.kind)].blocks += loss.blocks;
    rest_here.push_back(&loss);
  }
  for (const Loss& loss : there.losses) {
    comparison.there[static_cast<size_t>(loss.kind)].bytes += loss.bytes;
    comparison.there[static_cast<size_t>(loss.kind)].blocks += loss.blocks;
    rest_there.push_back(&loss);
  }

  const absl::flat_hash_set<const Loss*> inherited = Inherited(analysis, allocated, there);
  const bool slices_of_malloc = TakesSlicesFromMalloc(here.losses);
  absl::flat_hash_set<const Loss*> same_shapes;
  const auto add = [&](const Group& group, MatchStage stage, bool declared_by_glib = false) {
    ComparedLeak leak;
    leak.stage = stage;
    const Loss* most = nullptr;
    StackFacts facts{.inherited = group.here.empty(),
                     .declared_by_glib = declared_by_glib,
                     .slices_of_malloc = slices_of_malloc};
    for (const Loss* loss : group.here) {
      leak.here.Add(*loss);
      facts.here_cut |= IsCut(*loss);
      facts.kept_by_mapping |= loss->kept_by_mapping;
      facts.same_shape |= same_shapes.contains(loss);
      if (most == nullptr || loss->bytes > most->bytes) most = loss;
    }
    for (const Loss* loss : group.there) {
      leak.there.Add(*loss);
      facts.there_cut |= IsCut(*loss);
      facts.inherited &= inherited.contains(loss);
      facts.same_shape |= same_shapes.contains(loss);
      // Ours has the frames that Valgrind leaves out.
      if (group.here.empty() && (most == nullptr || loss->bytes > most->bytes)) most = loss;
    }
    leak.stack = most->stack;
    leak.verdict = Judge(leak, comparison.scanned_here, there.shown);
    Explain(analysis, here, there, facts, &leak);
    comparison.leaks.push_back(std::move(leak));
  };

  for (const MatchStage stage : kStages) {
    Pairing pairing(std::exchange(rest_here, {}), std::exchange(rest_there, {}), stage);
    for (const Group& group : pairing.Take(&rest_here, &rest_there)) add(group, stage);
    // Before the project's functions alone would join them with others.
    if (stage != MatchStage::kFiles) continue;
    for (const MatchStage declared : {MatchStage::kFunctions, MatchStage::kFiles}) {
      for (const Group& group : TakeDeclaredByGLib(&rest_here, &rest_there, declared)) {
        add(group, declared, /*declared_by_glib=*/true);
      }
    }
  }
  // The losses that are left are on one side only; there is one row for each stack.
  absl::flat_hash_map<std::string, size_t> index;
  std::vector<Group> alone;
  const auto collect = [&](const Loss* loss, bool is_here) {
    const StackWords stack = WordsOf(*loss, MatchStage::kLines);
    const std::string key =
        absl::StrCat(is_here ? "h" : "t", Key(stack.words, stack.words.size()));
    const auto [at, is_new] = index.try_emplace(key, alone.size());
    if (is_new) alone.emplace_back();
    (is_here ? alone[at->second].here : alone[at->second].there).push_back(loss);
  };
  for (const Loss* loss : rest_here) collect(loss, true);
  for (const Loss* loss : rest_there) collect(loss, false);
  same_shapes = SameShapes(rest_here, rest_there);
  for (const Group& group : alone) add(group, MatchStage::kNone);

  ExplainCircles(&comparison.leaks);
  for (const ComparedLeak& leak : comparison.leaks) {
    ++(leak.expected ? comparison.expected
                     : comparison.counts[static_cast<size_t>(leak.verdict)]);
  }
  const auto rank = [](const ComparedLeak& leak) {
    return leak.verdict == Verdict::kAgree ? 2 : leak.expected ? 1 : 0;
  };
  std::stable_sort(comparison.leaks.begin(), comparison.leaks.end(),
                   [&](const ComparedLeak& a, const ComparedLeak& b) {
                     if (rank(a) != rank(b)) return rank(a) < rank(b);
                     return std::max(a.here.total().bytes, a.there.total().bytes) >
                            std::max(b.here.total().bytes, b.there.total().bytes);
                   });
  return comparison;
}

}  // namespace memtrace::report::valgrind
