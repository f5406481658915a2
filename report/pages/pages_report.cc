#include "report/pages/pages_report.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace memtrace::report::pages {
namespace {

constexpr size_t kMostSkippedNamed = 3;

std::string SkippedNote(const PagesSnapshot& snapshot) {
  const size_t count = snapshot.skipped.size();
  std::string note = absl::StrCat(count, count == 1 ? " process was" : " processes were",
                                  " not read: ");
  for (size_t i = 0; i < count && i < kMostSkippedNamed; ++i) {
    absl::StrAppend(&note, i == 0 ? "" : "; ", snapshot.skipped[i].pid, " ",
                    snapshot.skipped[i].name, " (", snapshot.skipped[i].why, ")");
  }
  if (count > kMostSkippedNamed) absl::StrAppend(&note, "; and others");
  return absl::StrCat(note, ".");
}

}  // namespace

PagesReport MakeReport(PagesSnapshot snapshot, bool compare) {
  PagesReport report;
  report.snapshot = std::move(snapshot);
  const PagesSnapshot& s = report.snapshot;
  report.units = Units(s);
  report.user_pages = CountUserPages(s);
  report.alerts = TextAlerts(report.units, s);
  if (!s.counted) {
    report.notes.push_back(absl::StrCat(
        "How often a page is mapped was not counted (", s.not_counted_because,
        "): it is known whether once or more often; what several processes share is known by their "
        "proportional shares (smaps), not by page."));
  }
  if (compare) {
    Copies copies = CompareCopies(s);
    report.alerts.insert(report.alerts.end(), copies.alerts.begin(), copies.alerts.end());
    if (!copies.all) {
      report.notes.push_back(absl::StrCat("Only the first ", Copies::kMostPages,
                                          " private copies were compared with each other."));
    }
    if (!copies.not_compared.empty()) {
      report.notes.push_back(absl::StrCat("Not all private copies could be compared (",
                                          copies.not_compared, ")."));
    }
  }
  if (!s.skipped.empty()) report.notes.push_back(SkippedNote(s));
  return report;
}

}  // namespace memtrace::report::pages
