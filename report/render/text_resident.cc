// RESIDENT MEMORY: from the bytes of the heap to those of the process, at the peak and at the
// end, and which sites hold the pages.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "report/render/fault_words.h"
#include "report/render/lines.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

std::string Cell(const RssBridge* bridge, uint64_t bytes) {
  return bridge == nullptr ? "" : words::HumanBytes(bytes);
}

std::string BridgeTable(const RssBridge* peak, const RssBridge* end, const TextOptions& options) {
  TextTable table({{"at the peak"}, {"at the end"}}, "bytes that are resident");
  const auto add = [&](uint64_t at_peak, uint64_t at_end, absl::string_view what) {
    if (at_peak == 0 && at_end == 0) return;
    table.AddRow({Cell(peak, at_peak), Cell(end, at_end)}, [what, &options](size_t width) {
      return words::KeepBeginning(what, width, options.style.ellipsis());
    });
  };
  const auto of = [](const RssBridge* bridge, auto member) {
    return bridge == nullptr ? uint64_t{0} : member(*bridge);
  };
  for (size_t i = 0; i < kRssParts; ++i) {
    const auto part = [i](const RssBridge& bridge) { return bridge.parts[i]; };
    add(of(peak, part), of(end, part), RssPartText(static_cast<RssPart>(i)));
  }
  const auto rss = [](const RssBridge& bridge) { return bridge.rss; };
  add(of(peak, rss), of(end, rss), "= resident in all (RSS)");
  const auto beside = [&](auto member, absl::string_view what) {
    add(of(peak, member), of(end, member), what);
  };
  beside([](const RssBridge& b) { return b.untouched_bytes; },
         "beside: live, never touched or given back");
  beside([](const RssBridge& b) { return b.swap; }, "beside: swapped out");
  beside([](const RssBridge& b) { return b.huge; }, "of RSS: in huge pages");
  beside([](const RssBridge& b) { return b.page_tables; }, "beside: page tables");
  beside([](const RssBridge& b) { return b.pinned_bytes; },
         "free, on pages with live blocks");
  beside([](const RssBridge& b) { return b.enclosed_bytes; },
         "free pages below the last block of a heap");
  return table.Render(options.style, 2);
}

std::string SitesTable(const ReportView& view, const RssBridge& bridge, absl::string_view when,
                       const TextOptions& options) {
  std::vector<const ResidentSite*> sites;
  for (const ResidentSite& site : bridge.sites) {
    if (view.Matches(site.stack)) sites.push_back(&site);
  }
  if (sites.empty()) return "";
  const bool pinned = std::any_of(sites.begin(), sites.end(),
                                  [](const ResidentSite* site) { return site->pinned_bytes != 0; });
  std::vector<TextTable::Column> columns = {{"resident", false, true}, {"live"}, {"untouched"}};
  if (pinned) columns.push_back({"pins"});
  TextTable table(std::move(columns), absl::StrCat("allocated by, ", when));
  const size_t shown = options.Shown(sites.size());
  for (size_t i = 0; i < shown; ++i) {
    const ResidentSite& site = *sites[i];
    std::vector<std::string> cells = {words::HumanBytes(site.resident_bytes),
                                      words::HumanBytes(site.live_bytes),
                                      words::HumanBytes(site.untouched_bytes)};
    if (pinned) cells.push_back(words::HumanBytes(site.pinned_bytes));
    table.AddRow(std::move(cells), [&view, &site, &options](size_t width) {
      return CallerCell(view, site.stack, width, options);
    });
  }
  return absl::StrCat("\n", table.Render(options.style, 2),
                      MoreLine(options, sites.size(), shown, "site"));
}

}  // namespace

std::string ResidentText(const ReportView& view, const TextOptions& options) {
  const ResidentMemory& resident = view.analysis().resident;
  const RssBridge* const peak = resident.Peak();
  if (peak == nullptr) return "";
  const RssBridge* const end = resident.End();
  std::string remark = absl::StrCat(words::Plural(resident.bridges.size(), "snapshot"),
                                    "; the most pages at ", words::Duration(peak->time_ns));
  std::string out = absl::StrCat(Heading(options, "RESIDENT MEMORY", remark),
                                 BridgeTable(peak, end, options));
  const uint64_t highest = std::max(view.analysis().faults.peak_rss_bytes, peak->peak_rss);
  if (highest > peak->rss + peak->rss / 10) {
    out += Sentence(options, absl::StrCat("The most that was ever resident is ",
                                          words::HumanBytes(highest), ", between two snapshots."));
  }
  absl::StrAppend(&out, SitesTable(view, *peak, "at the peak", options));
  if (end != nullptr && end != peak) {
    absl::StrAppend(&out, SitesTable(view, *end, "at the end", options));
  }
  return out;
}

}  // namespace memtrace::report::render
