// What `memtrace pages` prints, in its formats.
//
// Pure functions of a PagesReport. Names are escaped in each as it has to be.

#ifndef MEMTRACE_REPORT_PAGES_PAGES_REPORT_H_
#define MEMTRACE_REPORT_PAGES_PAGES_REPORT_H_

#include <string>
#include <vector>

#include "report/pages/page_copies.h"
#include "report/pages/page_sums.h"
#include "report/pages/process_pages.h"
#include "report/render/style.h"
#include "report/words/sink.h"

namespace memtrace::report::pages {

struct PagesReport {
  PagesSnapshot snapshot;
  std::vector<Unit> units;
  UserPages user_pages;
  std::vector<Alert> alerts;
  std::vector<std::string> notes;  // what is not known, and why
};

// `compare`: also reads the contents of private copies.
PagesReport MakeReport(PagesSnapshot snapshot, bool compare);

struct PagesTextOptions {
  render::Style style;
  bool maps = false;  // a line for each mapping, with its page map
  size_t top = 20;    // rows of the units
};
void RenderPagesText(const PagesReport& report, const PagesTextOptions& options, words::Sink& out);

enum class PagesTable { kRegions, kMappings, kUnits, kAlerts };
void RenderPagesCsv(const PagesReport& report, PagesTable table, words::Sink& out);

// "memtrace-pages/1"; keys are only ever added.
void RenderPagesJson(const PagesReport& report, words::Sink& out);

// A line for each page that is resident or swapped out.
void RenderPagesRaw(const PagesReport& report, words::Sink& out);

// A picture that needs nothing else, for light and dark: as it is, or in a page with the tables.
void RenderPagesSvg(const PagesReport& report, words::Sink& out);
void RenderPagesHtml(const PagesReport& report, words::Sink& out);

// "program text", "libraries data", "heap".
std::string RowName(Owner owner, Region region);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PAGES_REPORT_H_
