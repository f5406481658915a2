// The heap graph in text: what keeps the heap, why blocks are still there, who points where.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/leak/leak_kinds.h"
#include "report/render/graph_view.h"
#include "report/render/lines.h"
#include "report/render/table.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

using leak::KeepPaths;

// How many of the first and of the last steps of a longer chain are shown.
constexpr size_t kStepsAtEnds = 6;

std::string InBlocks(const LeakAmount& amount) {
  return absl::StrCat(words::ExactOrHumanBytes(amount.bytes), " in ",
                      words::Plural(amount.blocks, "block"));
}

class GraphTextWriter {
 public:
  GraphTextWriter(const GraphView& graph, const TextOptions& options)
      : graph_(graph), report_(graph.report()), options_(options) {}

  void Summary(const leak::HeapSummary& summary);
  void Why(const leak::WhyAnswer& answer);
  void Pointers(const leak::PointersAnswer& answer);
  void Unnamed();
  std::string Take() { return std::move(out_); }

 private:
  static constexpr size_t kHanging = 2;  // more blanks in front of the lines that a text goes on in

  const Style& style() const { return options_.style; }
  void Title(absl::string_view title, absl::string_view remark) {
    absl::StrAppend(&out_, Heading(options_, title, remark));
  }
  // One line of names from the trace, behind `indent` blanks.
  void Line(size_t indent, absl::string_view text, Ink ink = Ink::kPlain) {
    const size_t width = style().width - indent;
    const std::string name = style().Name(text);
    absl::StrAppend(
        &out_, std::string(indent, ' '),
        style().Paint(ink,
                      options_.full ? name : words::KeepBeginning(name, width, style().ellipsis())),
        "\n");
  }
  // The same where what matters is at its end: it goes on in further lines.
  void Wrap(size_t indent, absl::string_view text, Ink ink = Ink::kPlain) {
    const size_t room = options_.full ? SIZE_MAX - 1 : style().width - indent - kHanging;
    std::string before(indent, ' ');
    for (const std::string& line : words::Wrapped(style().Name(text), room)) {
      absl::StrAppend(&out_, std::exchange(before, std::string(indent + kHanging, ' ')),
                      style().Paint(ink, line), "\n");
    }
  }
  std::string Root(size_t root) const { return RootText(report_.roots(), root); }
  std::string Block(uint32_t block, absl::string_view caller) const {
    const leak::BlockSite& site = report_.SiteOf(block);
    return absl::StrFormat("0x%x, %s, %s in %s", report_.graph().blocks().start(block),
                           words::ExactBytes(report_.graph().blocks().bytes(block)),
                           AllocationName(graph_.view(), site.stack, site.function), caller);
  }
  // A block with what is said of it; the name of its caller is what is shortened.
  void BlockLine(size_t indent, absl::string_view before, uint32_t block,
                 absl::string_view behind, Ink ink = Ink::kPlain) {
    constexpr size_t kLeast = 24;
    const size_t used = indent + kHanging + words::DisplayWidth(before) +
                        words::DisplayWidth(Block(block, "")) + words::DisplayWidth(behind);
    const size_t room = std::max(kLeast, style().width - std::min(style().width, used));
    const std::string caller =
        CallerWithin(graph_.view(), report_.SiteOf(block).stack, room, options_);
    Wrap(indent, absl::StrCat(before, Block(block, caller), behind), ink);
  }
  std::string Node(uint32_t node) const {
    if (!report_.nodes().IsBlock(node)) {
      return RootGroupText(report_.roots(), node - report_.nodes().NodeOfGroup(0));
    }
    const uint32_t block = report_.nodes().BlockOf(node);
    return absl::StrCat(
        "block ",
        Block(block, CallerInSentence(graph_.view(), report_.SiteOf(block).stack, options_)));
  }
  void Chain(uint32_t block);
  void Step(const KeepPaths::Step& step, bool is_first);

  const GraphView& graph_;
  leak::GraphReport& report_;
  const TextOptions& options_;
  std::string out_;
};

void GraphTextWriter::Summary(const leak::HeapSummary& summary) {
  Title("HEAP GRAPH", absl::StrCat("scan ", report_.held().scan.number, ": ",
                                   words::Plural(summary.blocks, "block"), ", ",
                                   words::Plural(summary.pointers, "pointer"), " between them, ",
                                   words::Plural(summary.root_words, "pointer"), " from roots"));
  Lines lines(options_);
  lines.Add("shared", absl::StrCat(InBlocks(summary.shared), " that no root keeps alone"));
  lines.Add("lost", InBlocks(summary.lost));
  absl::StrAppend(&out_, lines.Take());

  Title("KEPT BY ROOT", "what would go with it alone");
  TextTable roots({{"retained"}, {"blocks"}, {"words"}}, "root");
  size_t keeping = 0;
  for (const leak::KeepingRoot& root : summary.roots) keeping += root.retained.blocks != 0;
  const size_t shown_roots = options_.Shown(keeping);
  for (size_t i = 0; i < shown_roots; ++i) {
    const leak::KeepingRoot& root = summary.roots[i];
    roots.AddRow({words::HumanBytes(root.retained.bytes), words::Count(root.retained.blocks),
                  words::Count(root.words)},
                 [this, group = root.group](size_t width) {
                   return words::KeepEnds(style().Name(RootGroupText(report_.roots(), group)),
                                          width, style().ellipsis());
                 });
  }
  absl::StrAppend(&out_, roots.Render(style(), 2),
                  MoreLine(options_, keeping, shown_roots, "root"));

  Title("RETAINED BY SITE",
        "what would go with all its blocks; --why FINGERPRINT says what keeps them");
  TextTable sites({{"retained"}, {"own"}, {"blocks"}, {"fingerprint", true}}, "caller");
  const size_t shown_sites = options_.Shown(summary.sites.size());
  for (size_t i = 0; i < shown_sites; ++i) {
    const leak::RetainingSite& site = summary.sites[i].site;
    sites.AddRow({absl::StrCat(site.exact ? "" : ">=", words::HumanBytes(site.retained.bytes)),
                  words::HumanBytes(site.own.bytes), words::Count(site.own.blocks),
                  graph_.view().Fingerprint(site.site.stack, site.site.function)},
                 [this, stack = site.site.stack](size_t width) {
                   return CallerCell(graph_.view(), stack, width, options_);
                 });
  }
  absl::StrAppend(&out_, sites.Render(style(), 2),
                  MoreLine(options_, summary.sites.size(), shown_sites, "site"));
}

void GraphTextWriter::Step(const KeepPaths::Step& step, bool is_first) {
  std::string how = is_first ? "to " : absl::StrFormat("+%d to ", step.offset);
  if (step.how != leak::Pointer::kStart) absl::StrAppend(&how, "the inside of ");
  const bool by_heuristic =
      step.how != leak::Pointer::kStart && step.how != leak::Pointer::kInterior;
  BlockLine(6, how, step.block,
            by_heuristic ? absl::StrCat(" (", PointerName(step.how), ")") : "");
}

void GraphTextWriter::Chain(uint32_t block) {
  const std::vector<KeepPaths::Step> chain = report_.paths().ChainOf(block);
  const uint32_t root = report_.paths().RootOf(block);
  if (root != KeepPaths::kNone) {
    Wrap(4, Root(root), Ink::kStrong);
  } else {
    BlockLine(4, "lost: ", chain.front().block, "", Ink::kStrong);
  }
  // The block that a lost chain begins at has been named.
  const size_t first = root == KeepPaths::kNone ? 1 : 0;
  for (size_t i = first; i < chain.size(); ++i) {
    const bool left_out = !options_.full && chain.size() > 2 * kStepsAtEnds + 1 &&
                          i >= kStepsAtEnds && i < chain.size() - kStepsAtEnds;
    if (left_out) {
      if (i == kStepsAtEnds) {
        Line(6,
             absl::StrCat("... ", words::Plural(chain.size() - 2 * kStepsAtEnds, "more block"),
                          ": --full"),
             Ink::kDim);
      }
      continue;
    }
    Step(chain[i], i == 0);
  }
}

void GraphTextWriter::Why(const leak::WhyAnswer& answer) {
  const uint32_t first = answer.blocks.front();
  const leak::BlockSite& site = report_.SiteOf(first);
  LeakAmount all;
  std::vector<std::string> kinds;
  for (size_t i = 0; i < kLeakKinds; ++i) {
    const LeakAmount& amount = answer.kinds[i];
    all.bytes += amount.bytes;
    all.blocks += amount.blocks;
    if (amount.blocks == 0) continue;
    kinds.push_back(
        absl::StrCat(words::Count(amount.blocks), " ", KindPhrase(static_cast<LeakKind>(i))));
  }
  Title("WHY", absl::StrCat(InBlocks(all), ", ",
                            AllocationName(graph_.view(), site.stack, site.function), "  ",
                            absl::StrJoin(kinds, ", ")));
  absl::StrAppend(&out_, StackText(graph_.view(), site.stack, 4, options_));
  Lines lines(options_);
  const auto are = [&](LeakKind kind) {
    return answer.kinds[static_cast<size_t>(kind)].blocks != 0;
  };
  // Blocks that are lost already cannot become unreachable.
  const bool lost = !are(LeakKind::kReachable) && !are(LeakKind::kPossible);
  lines.Add("retained",
            lost ? absl::StrCat(InBlocks(answer.retained),
                                " hang on them and are lost with them, their own included")
                 : absl::StrCat("without them ", InBlocks(answer.retained),
                                " would be unreachable, their own included"));
  bool is_first = true;
  for (const uint32_t node : answer.held_by) {
    lines.Add(std::exchange(is_first, false) ? "held by" : "",
              absl::StrCat(style().Name(Node(node)), ", which retains ",
                           words::ExactOrHumanBytes(report_.retention().of[node].bytes)));
  }
  absl::StrAppend(&out_, lines.Take());
  const size_t shown = options_.Shown(answer.keepers.size());
  for (size_t i = 0; i < shown; ++i) {
    const leak::WhyAnswer::Keeper& keeper = answer.keepers[i];
    std::string head;
    if (keeper.group != KeepPaths::kNone) {
      head = absl::StrCat(InBlocks(keeper.kept), keeper.kept.blocks == 1 ? " is " : " are ",
                          KindPhrase(keeper.kind), ":");
    } else if (keeper.kind == LeakKind::kDefinite) {
      head = absl::StrCat(InBlocks(keeper.kept), keeper.kept.blocks == 1 ? " is" : " are",
                          " definitely lost: no root leads there");
    } else {
      head = absl::StrCat(InBlocks(keeper.kept), keeper.kept.blocks == 1 ? " is" : " are",
                          " indirectly lost: only lost blocks lead there");
    }
    absl::StrAppend(&out_, "\n");
    Line(2, head);
    Chain(keeper.example);
  }
  absl::StrAppend(&out_, MoreLine(options_, answer.keepers.size(), shown, "root"));
}

void GraphTextWriter::Pointers(const leak::PointersAnswer& answer) {
  const uint64_t start = report_.graph().blocks().start(answer.block);
  Title("WHO POINTS AT",
        absl::StrFormat("0x%x%s", start,
                        answer.address == start
                            ? ""
                            : absl::StrFormat(" (0x%x is %d bytes behind its begin)",
                                              answer.address, answer.address - start)));
  BlockLine(2, "", answer.block, absl::StrCat(", ", KindPhrase(report_.KindOf(answer.block))));
  const auto how = [](leak::Pointer pointer) {
    return pointer == leak::Pointer::kStart ? std::string("to its start")
           : pointer == leak::Pointer::kInterior
               ? std::string("to its inside")
               : absl::StrCat("to its inside, as good as its start (", PointerName(pointer), ")");
  };
  const size_t roots = options_.Shown(answer.roots.size());
  for (size_t i = 0; i < roots; ++i) {
    const uint32_t root = answer.roots[i];
    Wrap(4, absl::StrCat(Root(root), ": ", how(report_.graph().roots()[root].how)));
  }
  absl::StrAppend(&out_, MoreLine(options_, answer.roots.size(), roots, "root"));
  const size_t blocks = options_.Shown(answer.blocks.size());
  for (size_t i = 0; i < blocks; ++i) {
    const leak::PointersAnswer::FromBlock& from = answer.blocks[i];
    BlockLine(4, absl::StrFormat("+%d of block ", from.offset), from.block,
              absl::StrCat(", ", KindPhrase(report_.KindOf(from.block)), ": ", how(from.how)));
  }
  absl::StrAppend(&out_, MoreLine(options_, answer.blocks.size(), blocks, "block"));
  if (answer.roots.empty() && answer.blocks.empty()) Line(4, "nothing does");
}

void GraphTextWriter::Unnamed() {
  const std::vector<std::string>& unnamed = report_.roots().unnamed();
  if (unnamed.empty()) return;
  absl::StrAppend(&out_, "\n");
  Lines lines(options_);
  const size_t shown = options_.Shown(unnamed.size());
  for (size_t i = 0; i < shown; ++i) lines.Add(i == 0 ? "no names" : "", unnamed[i], Ink::kDim);
  absl::StrAppend(&out_, lines.Take(), MoreLine(options_, unnamed.size(), shown, "module"));
}

}  // namespace

std::string GraphText(const GraphView& graph, const TextOptions& options) {
  GraphTextWriter writer(graph, options);
  if (graph.summary().has_value()) writer.Summary(*graph.summary());
  if (graph.why().has_value()) writer.Why(*graph.why());
  if (graph.pointers().has_value()) writer.Pointers(*graph.pointers());
  writer.Unnamed();
  return writer.Take();
}

}  // namespace memtrace::report::render
