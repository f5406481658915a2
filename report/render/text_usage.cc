// How long blocks live, how they move and change hands, and who of the modules allocates.

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "report/base/path.h"
#include "report/words/escape.h"
#include "report/render/plot.h"
#include "report/render/stacked_timeline.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/units.h"
#include "report/render/mismatches.h"
#include "report/render/usage_tables.h"

namespace memtrace::report::render {
namespace {

// Lines of the histogram: from each of these on.
constexpr uint64_t kEdges[] = {
    0,           1'000,         10'000,         100'000,         1'000'000,        10'000'000,
    100'000'000, 1'000'000'000, 10'000'000'000, 100'000'000'000, 1'000'000'000'000};

std::string QuantileText(const ReportView& view, const Lifetimes& lifetimes, double q) {
  return words::Duration(static_cast<uint64_t>(LifetimeQuantile(view, lifetimes, q)));
}

// Pairs whose rows would read alike are one: calls of one line, by other instructions or ways.
std::vector<Mismatch> MismatchesByCallers(const ReportView& view, const TextOptions& options) {
  constexpr size_t kWhole = 4096;
  std::vector<Mismatch> rows;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> known;
  for (const Mismatch& one : Mismatches(view)) {
    const auto [at, is_new] = known.try_emplace(
        {one.allocator, one.ended_by, CallerCell(view, one.allocated, kWhole, options),
         CallerCell(view, one.ended, kWhole, options)},
        rows.size());
    if (is_new) {
      rows.push_back(one);
    } else {
      rows[at->second].times += one.times;
    }
  }
  absl::c_stable_sort(rows, [](const Mismatch& a, const Mismatch& b) { return a.times > b.times; });
  return rows;
}

}  // namespace

std::string LifetimesText(const ReportView& view, const TextOptions& options) {
  Lifetimes all;
  std::vector<std::pair<uint64_t, const SiteGroup*>> groups;
  for (const SiteGroup& group : view.callers()) {  // which have each site once
    const Lifetimes lifetimes = LifetimesOf(group);
    all.Add(lifetimes);
    const uint64_t blocks = lifetimes.blocks();
    if (blocks > 0) groups.emplace_back(blocks, &group);
  }
  const uint64_t freed = all.blocks();
  if (freed == 0) return Heading(options, "LIFETIMES", "no block was freed");
  const Style& style = options.style;
  TextTable table({{"lived", true}, {"blocks"}, {"share"}}, "");
  std::vector<uint64_t> counts;
  const auto total = static_cast<double>(freed);
  // The sums are rounded, not the rows, which add up then.
  uint64_t above = freed;
  for (size_t i = 0; i < std::size(kEdges); ++i) {
    const double next =
        i + 1 < std::size(kEdges) ? all.classes.ShareAbove(static_cast<double>(kEdges[i + 1])) : 0;
    const uint64_t rest = std::min(above, static_cast<uint64_t>(next * total + 0.5));
    counts.push_back(above - rest);
    above = rest;
  }
  const uint64_t most = *std::max_element(counts.begin(), counts.end());
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const std::string name = i == 0 ? absl::StrCat("below ", words::Duration(kEdges[1]))
                                    : absl::StrCat("from ", words::Duration(kEdges[i]));
    table.AddRow({name, words::Count(counts[i]),
                  words::Percent(static_cast<double>(counts[i]), total)},
                 [&style, n = counts[i], most](size_t width) {
                   return style.Paint(
                       Ink::kPlot, HorizontalBar(static_cast<double>(n), static_cast<double>(most),
                                                 std::min<size_t>(width, 40), style));
                 });
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  TextTable callers({{"freed"}, {"median"}, {"90 %"}, {"99 %"}}, "caller");
  const size_t shown = options.Shown(groups.size());
  for (size_t i = 0; i < shown; ++i) {
    const Lifetimes lifetimes = LifetimesOf(*groups[i].second);
    callers.AddRow({words::ShortCount(groups[i].first), QuantileText(view, lifetimes, 0.5),
                    QuantileText(view, lifetimes, 0.9), QuantileText(view, lifetimes, 0.99)},
                   [&view, &options, stack = groups[i].second->stack](size_t width) {
                     return CallerCell(view, stack, width, options);
                   });
  }
  return absl::StrCat(
      Heading(options, "LIFETIMES",
              absl::StrCat(
                  "of ", words::Plural(freed, "block"), view.sampled() ? " of the sample" : "",
                  " that ", freed == 1 ? "was" : "were", " freed: median ",
                  QuantileText(view, all, 0.5), ", 90 % up to ", QuantileText(view, all, 0.9))),
      table.Render(style, 2), "\n", callers.Render(style, 2),
      MoreLine(options, groups.size(), shown, "caller"));
}

std::string ReallocsText(const ReportView& view, const TextOptions& options) {
  struct Row {
    const SiteGroup* group;
    SiteMoves moves;
  };
  std::vector<Row> rows;
  uint64_t reallocs = 0, copied = 0, growths = 0;
  for (const SiteGroup& group : view.callers()) {
    const SiteMoves moves = Moves(group);
    if (moves.reallocations + moves.container_growths == 0) continue;
    reallocs += moves.reallocations;
    growths += moves.container_growths;
    copied += moves.copied_bytes + moves.container_copied_bytes;
    rows.push_back({&group, moves});
  }
  const std::vector<Mismatch> mismatches = MismatchesByCallers(view, options);
  std::string out;
  if (rows.empty()) {
    out = Heading(options, "REALLOCS AND CONTAINERS", "none");
  } else {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.moves.copied_bytes + a.moves.container_copied_bytes >
             b.moves.copied_bytes + b.moves.container_copied_bytes;
    });
    TextTable table({{"reallocs"}, {"moved"}, {"longest"}, {"replaced"}, {"copied"}}, "caller");
    const size_t shown = options.Shown(rows.size());
    for (size_t i = 0; i < shown; ++i) {
      const SiteMoves& moves = rows[i].moves;
      table.AddRow(
          {words::ShortCount(moves.reallocations),
           moves.reallocations == 0 ? "-"
                                    : words::Percent(static_cast<double>(moves.moved),
                                                     static_cast<double>(moves.reallocations)),
           words::ShortCount(moves.longest_chain), words::ShortCount(moves.container_growths),
           words::HumanBytes(moves.copied_bytes + moves.container_copied_bytes)},
          [&view, &options, stack = rows[i].group->stack](size_t width) {
            return CallerCell(view, stack, width, options);
          });
    }
    out = absl::StrCat(
        Heading(
            options, "REALLOCS AND CONTAINERS",
            absl::StrCat(words::Plural(reallocs, "realloc"), view.sampled() ? " in the sample" : "",
                         ", ", words::Plural(growths, "block"), " replaced by larger ones, ",
                         words::HumanBytes(copied), " copied")),
        table.Render(options.style, 2), MoreLine(options, rows.size(), shown, "caller"));
  }
  if (!mismatches.empty()) {
    TextTable table({{"times"}, {"allocated by", true}, {"ended by", true}},
                    "where, and where it ended");
    const size_t shown = options.Shown(mismatches.size());
    for (size_t i = 0; i < shown; ++i) {
      const Mismatch& one = mismatches[i];
      table.AddRow({words::ShortCount(one.times), one.allocator, one.ended_by},
                   [&view, &options, one](size_t width) {
                     const size_t half = width > 4 ? (width - 4) / 2 : 0;
                     return absl::StrCat(CallerCell(view, one.allocated, half, options), " -> ",
                                         CallerCell(view, one.ended, half, options));
                   });
    }
    absl::StrAppend(
        &out,
        Heading(
            options, "MISMATCHED PAIRS",
            view.analysis().frees_with_stack != 0
                ? "blocks that ended by another kind of function than they came from"
                : "blocks of operator new that realloc took; frees were recorded without stacks"),
        table.Render(options.style, 2), MoreLine(options, mismatches.size(), shown, "pair"));
  }
  return out;
}

std::string ModulesText(const ReportView& view, const TextOptions& options) {
  const std::vector<ModuleUsage> modules = Modules(view);
  if (modules.empty()) return "";
  const Numbers numbers(view, options.style);
  TextTable table({{"total"},
                   {"wasted"},
                   {"live"},
                   {numbers.wide() ? "at peak" : "peak"},
                   {numbers.wide() ? "allocations" : "allocs"},
                   {"frees"}},
                  "module of the caller");
  const size_t shown = options.Shown(modules.size());
  for (size_t i = 0; i < shown; ++i) {
    const ModuleUsage& module = modules[i];
    table.AddRow({numbers.Bytes(module.bytes_allocated), numbers.Wasted(module.wasted_bytes),
                  numbers.Bytes(module.live_bytes), numbers.Bytes(module.bytes_at_peak),
                  numbers.Events(module.allocations), numbers.Events(module.frees)},
                 [&options, path = module.module](size_t width) {
                   return words::KeepEnd(
                       options.style.Name(options.full ? path : std::string(FileNameOf(path))),
                       width, options.style.ellipsis());
                 });
  }
  return absl::StrCat(
      Heading(options, "MODULES", modules.size() == 1 ? "one" : words::Count(modules.size())),
      table.Render(options.style, 2), MoreLine(options, modules.size(), shown, "module"));
}

std::string ExchangesText(const ReportView& view, const TextOptions& options) {
  const std::vector<ThreadExchange>& exchanges = view.analysis().exchanges;
  if (exchanges.empty()) return "";
  const auto name = [&](ThreadId id) {
    const ThreadSummary* thread = view.ThreadOf(id);
    if (thread == nullptr) return std::string("a thread that is not known");
    return absl::StrCat(options.style.Name(thread->name), thread->name.empty() ? "" : " ",
                        thread->tid);
  };
  const Numbers numbers(view, options.style);
  const ExchangeSum& left_out = view.analysis().exchanges_left_out;
  uint64_t blocks = left_out.blocks;
  for (const ThreadExchange& one : exchanges) blocks += one.blocks;
  TextTable table({{"blocks"}, {"bytes"}}, "allocated by -> freed by");
  const size_t shown = options.Shown(exchanges.size());
  for (size_t i = 0; i < shown; ++i) {
    const ThreadExchange& one = exchanges[i];
    table.AddRow(
        {numbers.Events(one.blocks), numbers.Bytes(one.bytes)},
        [&options, text = absl::StrCat(name(one.from), " -> ", name(one.to))](size_t width) {
          return words::KeepBeginning(text, width, options.style.ellipsis());
        });
  }
  return absl::StrCat(Heading(options, "FREED BY ANOTHER THREAD", numbers.Plural(blocks, "block")),
                      table.Render(options.style, 2),
                      MoreLine(options, exchanges.size(), shown, "thread pair"),
                      left_out.blocks == 0
                          ? ""
                          : Sentence(options, absl::StrCat(
                                numbers.Plural(left_out.blocks, "block"),
                                " of more pairs of threads, which are not told apart")));
}

}  // namespace memtrace::report::render
