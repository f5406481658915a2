#include "report/render/usage_tables.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace memtrace::report::render {

std::vector<ModuleUsage> Modules(const ReportView& view) {
  std::map<std::string, ModuleUsage> by_path;
  for (const SiteGroup& group : view.callers()) {
    const Frame* frame = view.Caller(group.stack);
    const std::string path = frame == nullptr        ? "[no stack]"
                             : frame->module.empty() ? "[unknown]"
                                                     : frame->module;
    ModuleUsage& module = by_path[path];
    module.module = path;
    ++module.callers;
    module.allocations += group.allocations;
    module.frees += group.frees;
    module.bytes_allocated += group.bytes_allocated;
    module.live_bytes += group.live_bytes;
    module.live_blocks += group.live_blocks;
    module.bytes_at_peak += group.bytes_at_peak;
    module.wasted_bytes += group.wasted_bytes;
    module.temporary += group.temporary;
  }
  std::vector<ModuleUsage> modules;
  for (auto& [path, module] : by_path) modules.push_back(std::move(module));
  std::stable_sort(modules.begin(), modules.end(), [](const ModuleUsage& a, const ModuleUsage& b) {
    return std::tuple(b.bytes_allocated, b.allocations) <
           std::tuple(a.bytes_allocated, a.allocations);
  });
  return modules;
}

Lifetimes LifetimesOf(const ReportView& view) {
  Lifetimes all;
  if (view.sites().size() == view.analysis().sites.size()) {
    // All sites are added in the order in which they are in memory, which is faster.
    for (const Site& site : view.analysis().sites) all.Add(site);
  } else {
    for (const Site* site : view.sites()) all.Add(*site);
  }
  return all;
}

Lifetimes LifetimesOf(const SiteGroup& group) {
  Lifetimes all;
  for (const Site* site : group.sites) all.Add(*site);
  return all;
}

Lifetimes LifetimesOf(const Site& site) {
  Lifetimes one;
  one.Add(site);
  return one;
}

double LifetimeQuantile(const ReportView& view, const Lifetimes& lifetimes, double q) {
  // In a sample the sum is of all blocks, but the classes are of those that were seen.
  const double sum_ns = view.sampled() ? 0 : lifetimes.sum_ns;
  return std::min(lifetimes.classes.Quantile(q, sum_ns),
                  static_cast<double>(view.analysis().process.duration_ns));
}

SiteMoves Moves(const SiteGroup& group) {
  SiteMoves all;
  for (const Site* site : group.sites) {
    const SiteMoves& one = site->moves;
    all.reallocations += one.reallocations;
    all.grown += one.grown;
    all.moved += one.moved;
    all.copied_bytes += one.copied_bytes;
    all.longest_chain = std::max(all.longest_chain, one.longest_chain);
    all.container_growths += one.container_growths;
    all.container_copied_bytes += one.container_copied_bytes;
  }
  return all;
}

}  // namespace memtrace::report::render
