// Tables over the sites of a view that more than one format writes.
//
// Pure functions of a ReportView.

#ifndef MEMTRACE_REPORT_RENDER_USAGE_TABLES_H_
#define MEMTRACE_REPORT_RENDER_USAGE_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/render/view.h"

namespace memtrace::report::render {

// The allocations of one module's code; a site belongs to the module of its caller.
struct ModuleUsage {
  std::string module;  // path; "[no stack]", "[unknown]"
  size_t callers = 0;
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
  uint64_t live_bytes = 0, live_blocks = 0, bytes_at_peak = 0;
  uint64_t wasted_bytes = 0, temporary = 0;
};
std::vector<ModuleUsage> Modules(const ReportView& view);  // most bytes first

// How long the freed blocks lived.
struct Lifetimes {
  LifetimeHistogram classes;
  double sum_ns = 0;

  uint64_t blocks() const { return classes.blocks(); }
  void Add(const Site& site) {
    classes.Add(site.lifetimes);
    sum_ns += site.freed_lifetime_ns;
  }
  void Add(const Lifetimes& other) {
    classes.Add(other.classes);
    sum_ns += other.sum_ns;
  }
};
// The lifetimes of all sites; of one caller; of one site.
Lifetimes LifetimesOf(const ReportView& view);
Lifetimes LifetimesOf(const SiteGroup& group);
Lifetimes LifetimesOf(const Site& site);
// The quantile in ns; 0: no block was freed. No block lived longer than the run,
// though its class goes on.
double LifetimeQuantile(const ReportView& view, const Lifetimes& lifetimes, double q);

// The moves of a caller's sites together.
SiteMoves Moves(const SiteGroup& group);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_USAGE_TABLES_H_
