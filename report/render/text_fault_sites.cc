// WHOSE FAULTS: which sites allocated the memory that faulted, which code touched it, and
// what the other faults were for; all of them, so that the sums are those of getrusage.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/render/fault_words.h"
#include "report/render/lines.h"
#include "report/render/short_name.h"
#include "report/render/site_measure.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

std::string Sums(const FaultSums& sums) {
  return absl::StrCat(
      words::Count(sums.minor), " minor",
      sums.major == 0 ? "" : absl::StrCat(", ", words::Count(sums.major), " major"));
}

// The width of the column of those who touched. The rest, for those who allocated,
// must be worth reading.
size_t ToucherWidth(const TextOptions& options) {
  const size_t width = options.style.width;
  return width < 70 ? 11 : width < 100 ? 20 : 28 + (width - 100) / 4;
}

// "memset" of the toucher that has most, with its share if there are others.
std::string MainToucher(const ReportView& view, const std::vector<FaultToucher>& touchers,
                        const FaultSums& all, const TextOptions& options) {
  if (touchers.empty()) return "";
  const FaultToucher& most = touchers.front();
  const std::string share =
      most.faults.all() >= all.all()
          ? ""
          : absl::StrCat(" ", words::Percent(static_cast<double>(most.faults.all()),
                                             static_cast<double>(all.all())));
  const size_t width = ToucherWidth(options), taken = words::DisplayWidth(share);
  if (width < 2 * taken) return ShortName(TouchedBy(view, most), width, options.style);
  return absl::StrCat(ShortName(TouchedBy(view, most), width - taken, options.style), share);
}

std::string AccountText(const FaultDetails& details, const TextOptions& options) {
  Lines lines(options);
  const auto add = [&](absl::string_view label, const FaultSums& sums, absl::string_view what) {
    if (sums.all() != 0) lines.Add(label, absl::StrCat(Sums(sums), ": ", what));
  };
  add("Before", details.before, "the start of the program, by the kernel and the loader");
  add("Seen", details.told,
      details.in_kernel.all() == 0
          ? "each with its address and instruction"
          : absl::StrCat("each with its address and instruction; of these ",
                         Sums(details.in_kernel), " in the kernel on the program's behalf"));
  if (details.lost != 0) {
    lines.Add("Lost",
              absl::StrCat(words::Plural(details.lost, "event"),
                           " while nothing was allocated that would have emptied the rings"),
              Ink::kWarning);
  }
  if (details.not_told.all() != 0) {
    lines.Add("Not seen",
              absl::StrCat(Sums(details.not_told), ": ",
                           details.source == format::FaultSource::kUserEvents
                               ? "taken by the kernel in system calls of the program (a read into "
                                 "fresh memory), which were not asked for or may not be seen, or "
                                 "behind the last look"
                               : "behind the last look, or by pages that the kernel filled in "
                                 "without a fault of the program's"));
  }
  return lines.Take();
}

std::string SitesTable(const ReportView& view, const TextOptions& options) {
  const FaultDetails& details = view.analysis().fault_details;
  std::vector<const FaultSite*> sites;
  for (const FaultSite& site : details.sites) {
    if (view.Matches(site.stack)) sites.push_back(&site);
  }
  if (sites.empty()) return "";
  const bool major = std::any_of(sites.begin(), sites.end(),
                                 [](const FaultSite* site) { return site->faults.major != 0; });
  std::vector<TextTable::Column> columns;
  columns.reserve(6);
  columns.push_back({"minor", false, true});
  if (major) columns.push_back({"major"});
  columns.push_back({"of seen"});
  if (details.ns_per_fault != 0) columns.push_back({"time"});
  columns.push_back({"by malloc"});
  columns.push_back({"touched by", true});
  TextTable table(std::move(columns), "allocated by");
  const size_t shown = options.Shown(sites.size());
  for (size_t i = 0; i < shown; ++i) {
    const FaultSite& site = *sites[i];
    std::vector<std::string> cells = {words::Count(site.faults.minor)};
    if (major) cells.push_back(words::Count(site.faults.major));
    cells.push_back(words::Percent(static_cast<double>(site.faults.all()),
                                   static_cast<double>(details.told.all())));
    if (details.ns_per_fault != 0) {
      cells.push_back(words::Duration(site.faults.minor * details.ns_per_fault));
    }
    cells.push_back(words::Count(site.by_allocator));
    cells.push_back(MainToucher(view, site.touchers, site.faults, options));
    table.AddRow(std::move(cells), [&view, &site, &options](size_t width) {
      return CallerCell(view, site.stack, width, options);
    });
  }
  return absl::StrCat(table.Render(options.style, 2),
                      MoreLine(options, sites.size(), shown, "site"));
}

std::string Words(const ReportView& view, const TextOptions& options) {
  constexpr size_t kMostThrash = 3;
  const FaultDetails& details = view.analysis().fault_details;
  std::string out;
  size_t said = 0;
  const auto name = [&options](absl::string_view function, absl::string_view place) {
    return NameInSentence(function, place, options);
  };
  for (const std::string& sentence : FaultSentences(view, name)) {
    Lines lines(options);
    lines.Add(out.empty() ? "Findings" : "", sentence);
    absl::StrAppend(&out, lines.Take());
  }
  for (const ThrashStretch& stretch : details.thrash) {
    Lines lines(options);
    lines.Add(
        "Thrash",
        absl::StrCat("from ", words::Duration(stretch.begin_ns), " to ",
                     words::Duration(stretch.end_ns), " ", words::Plural(stretch.refaults, "page"),
                     " came in from disk that had been there before, while the "
                     "heap stayed at ",
                     words::HumanBytes(stretch.live_bytes)),
        Ink::kBad);
    absl::StrAppend(&out, lines.Take());
    if (++said >= kMostThrash + options.top) break;
  }
  return out;
}

std::string MappingsTable(const ReportView& view, const TextOptions& options) {
  const FaultDetails& details = view.analysis().fault_details;
  std::vector<const FaultMapping*> mappings;
  for (const FaultMapping& mapping : details.mappings) {
    if (view.Matches(mapping.stack)) mappings.push_back(&mapping);
  }
  if (mappings.empty()) return "";
  TextTable table({{"minor", false, true}, {"major"}, {"touched by", true}},
                  "mapped by the program in");
  const size_t all = mappings.size();
  const size_t shown = options.Shown(all);
  for (size_t i = 0; i < shown; ++i) {
    const FaultMapping& mapping = *mappings[i];
    table.AddRow({words::Count(mapping.faults.minor), words::Count(mapping.faults.major),
                  MainToucher(view, mapping.touchers, mapping.faults, options)},
                 [&](size_t width) {
                   if (mapping.file.empty()) return CallerCell(view, mapping.stack, width, options);
                   return words::KeepEnd(options.style.Name(mapping.file), width,
                                         options.style.ellipsis());
                 });
  }
  return absl::StrCat("\n", table.Render(options.style, 2),
                      MoreLine(options, all, shown, "mapping"));
}

std::string PlacesTable(const FaultDetails& details, const TextOptions& options) {
  if (details.places.empty()) return "";
  TextTable table({{"minor", false, true}, {"major"}, {"other memory", true}}, "of");
  const size_t all = details.places.size();
  const size_t shown = options.Shown(all);
  for (size_t i = 0; i < shown; ++i) {
    const FaultPlace& place = details.places[i];
    table.AddRow({words::Count(place.faults.minor), words::Count(place.faults.major),
                  std::string(MemoryKindText(place.kind))},
                 [&](size_t width) {
                   return words::KeepEnd(options.style.Name(place.name), width,
                                         options.style.ellipsis());
                 });
  }
  return absl::StrCat("\n", table.Render(options.style, 2),
                      MoreLine(options, all, shown, "place"));
}

}  // namespace

std::string FaultSitesText(const ReportView& view, const TextOptions& options) {
  const FaultDetails& details = view.analysis().fault_details;
  if (!details.known) return "";
  if (details.source == format::FaultSource::kNone) {
    return absl::StrCat(Heading(options, "WHOSE FAULTS", "no fault events: counts alone"),
                        Sentence(options, absl::StrCat(options.style.Name(details.why), ".")));
  }
  std::string out =
      Heading(options, "WHOSE FAULTS",
              details.ns_per_fault == 0
                  ? ""
                  : absl::StrCat("a minor fault took ", words::Duration(details.ns_per_fault),
                                 " here, events included"));
  if (!KnowsFaultsOfSites(view.analysis())) {
    absl::StrAppend(
        &out,
        Sentence(options, "Of all blocks: which of them are of the selected ones is not known."));
  }
  return absl::StrCat(out, AccountText(details, options), Words(view, options),
                      SitesTable(view, options),
                      MappingsTable(view, options), PlacesTable(details, options));
}

}  // namespace memtrace::report::render
