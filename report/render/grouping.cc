#include "report/render/grouping.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "report/names/frames_filter.h"
#include "report/render/stack_walk.h"

namespace memtrace::report::render {
namespace {

// By numbers in the order of first rows those by size.
std::vector<uint32_t> Ranks(std::vector<GroupKey> keys) {
  std::sort(keys.begin(), keys.end(), ComesFirst);
  std::vector<uint32_t> ranks(keys.size());
  for (uint32_t rank = 0; rank < keys.size(); ++rank) ranks[keys[rank].number] = rank;
  return ranks;
}

void Count(const Site& site, uint64_t figure, uint32_t number, std::vector<GroupKey>* keys) {
  if (number == keys->size()) {
    keys->push_back({.stack = site.stack, .function = site.function, .number = number});
  }
  GroupKey& key = (*keys)[number];
  key.figure += figure;
  key.bytes_allocated += site.bytes_allocated;
  key.allocations += site.allocations;
}

}  // namespace

bool ComesFirst(const GroupKey& a, const GroupKey& b) {
  return std::tuple(b.figure, b.bytes_allocated, b.allocations, a.stack, a.function) <
         std::tuple(a.figure, a.bytes_allocated, a.allocations, b.stack, b.function);
}

bool Grouping::IsOf(const Analysis& analysis) const {
  if (rows.size() != analysis.sites.size()) return false;
  if (leaks > rows.size() || callers > rows.size()) return false;
  std::vector<bool> sites(rows.size()), leak_groups(leaks), caller_groups(callers);
  uint32_t leaks_there = 0, callers_there = 0;
  for (const Row& row : rows) {
    if (row.site >= rows.size() || sites[row.site]) return false;
    sites[row.site] = true;
    if ((row.leak == 0) != (analysis.sites[row.site].live_blocks == 0)) return false;
    if (row.leak > leaks || row.caller >= callers) return false;
    if (row.leak != 0 && !leak_groups[row.leak - 1]) {
      leak_groups[row.leak - 1] = true;
      ++leaks_there;
    }
    if (!caller_groups[row.caller]) {
      caller_groups[row.caller] = true;
      ++callers_there;
    }
  }
  return leaks_there == leaks && callers_there == callers;
}

Grouping GroupSites(const Analysis& analysis, const SiteSymbols& symbols,
                    const std::function<bool(StackId)>& matches) {
  // In the order of the trace, in which neighbours have most of their frames in common.
  struct Names {
    uint32_t stack = 0, caller = 0;  // the same of two that read alike
  };
  std::vector<Names> names(analysis.sites.size());
  Grouping grouping;
  grouping.rows.reserve(analysis.sites.size());
  StackWalk walk(symbols);
  for (uint32_t i = 0; i < analysis.sites.size(); ++i) {
    const Site& site = analysis.sites[i];
    if (matches && !matches(site.stack)) continue;
    grouping.rows.push_back({.site = i});
    walk.GoTo(site.stack);
    const absl::Span<const Frame* const> frames = walk.frames();
    if (site.live_blocks > 0) names[i].stack = walk.Key();
    if (!frames.empty()) names[i].caller = frames[names::CutStack(frames).caller]->identity;
  }
  // Ids are given in the order of the trace: a tie has the same order every time.
  std::sort(grouping.rows.begin(), grouping.rows.end(),
            [&](const Grouping::Row& x, const Grouping::Row& y) {
              const Site& a = analysis.sites[x.site];
              const Site& b = analysis.sites[y.site];
              return std::tuple(b.bytes_allocated, b.allocations, a.stack, a.function) <
                     std::tuple(a.bytes_allocated, a.allocations, b.stack, b.function);
            });

  absl::flat_hash_map<std::pair<uint32_t, format::AllocFunction>, uint32_t> by_stack;
  absl::flat_hash_map<uint32_t, uint32_t> by_caller;
  std::vector<GroupKey> leaks, callers;
  for (Grouping::Row& row : grouping.rows) {
    const Site& site = analysis.sites[row.site];
    const Names& its = names[row.site];
    if (site.live_blocks > 0) {
      const auto next = static_cast<uint32_t>(by_stack.size());
      const uint32_t number =
          by_stack.try_emplace({its.stack, site.function}, next).first->second;
      Count(site, site.live_bytes, number, &leaks);
      row.leak = number + 1;
    }
    const auto next = static_cast<uint32_t>(by_caller.size());
    row.caller = by_caller.try_emplace(its.caller, next).first->second;
    Count(site, site.bytes_allocated, row.caller, &callers);
  }
  grouping.leaks = static_cast<uint32_t>(leaks.size());
  grouping.callers = static_cast<uint32_t>(callers.size());
  const std::vector<uint32_t> leak_ranks = Ranks(std::move(leaks));
  const std::vector<uint32_t> caller_ranks = Ranks(std::move(callers));
  for (Grouping::Row& row : grouping.rows) {
    if (row.leak != 0) row.leak = leak_ranks[row.leak - 1] + 1;
    row.caller = caller_ranks[row.caller];
  }
  return grouping;
}

}  // namespace memtrace::report::render
