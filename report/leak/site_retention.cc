#include "report/leak/site_retention.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace memtrace::report::leak {
namespace {

constexpr uint32_t kNoSite = UINT32_MAX;

class Finder {
 public:
  Finder(const RetentionGraph& graph, const Retention& retention,
         const std::vector<BlockSite>& sites)
      : graph_(graph), retention_(retention) {
    absl::flat_hash_map<std::pair<uint32_t, format::AllocFunction>, uint32_t> known;
    site_of_.assign(graph.size(), kNoSite);
    for (uint32_t block = 0; block < graph.heap().size(); ++block) {
      const HeldBlock& held = graph.heap().blocks().block(block);
      const BlockSite& site = sites[held.site];
      const auto [at, is_new] = known.try_emplace({site.stack.value, site.function},
                                                  static_cast<uint32_t>(found_.size()));
      if (is_new) found_.push_back({site, {}, {}, true});
      site_of_[graph.NodeOf(block)] = at->second;
      found_[at->second].own.bytes += held.size();
      ++found_[at->second].own.blocks;
    }
  }

  std::vector<RetainingSite> Find(uint64_t most_steps) {
    AddOneByOne();
    std::vector<uint32_t> open = SitesThatMayShare();
    for (const uint32_t site : open) found_[site].exact = false;
    std::sort(open.begin(), open.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(found_[b].retained.bytes, a) < std::tuple(found_[a].retained.bytes, b);
    });
    uint64_t steps = graph_.size();
    for (uint32_t node = 0; node < graph_.size(); ++node) steps += graph_.degree(node);
    uint64_t spent = 0;
    for (size_t i = 0; i < open.size() && (spent += steps) <= most_steps; i += kBits) {
      Together({open.data() + i, std::min(kBits, open.size() - i)});
    }
    std::sort(found_.begin(), found_.end(), [](const RetainingSite& a, const RetainingSite& b) {
      return std::tuple(b.retained.bytes, b.own.bytes, a.site.stack, a.site.function) <
             std::tuple(a.retained.bytes, a.own.bytes, b.site.stack, b.site.function);
    });
    return std::move(found_);
  }

 private:
  static constexpr size_t kBits = 64;

  // Adds up what the blocks of each site retain, without those blocks that another block of the
  // site retains. Needs for each node whether its site is on its way up the tree: that is known of
  // each site by a count while the tree is walked from the top.
  void AddOneByOne() {
    const std::vector<uint32_t>& order = retention_.tree.order;
    // The tree as lists of children.
    std::vector<uint32_t> child(graph_.size(), kNoNode), sibling(graph_.size(), kNoNode);
    for (size_t i = order.size(); i-- > 1;) {
      sibling[order[i]] = std::exchange(child[retention_.tree.of[order[i]]], order[i]);
    }
    std::vector<uint32_t> on_way(found_.size());
    std::vector<std::pair<uint32_t, bool>> path = {{0, false}};
    while (!path.empty()) {
      const auto [node, is_left] = path.back();
      path.pop_back();
      const uint32_t site = site_of_[node];
      if (is_left) {
        --on_way[site];
        continue;
      }
      if (site != kNoSite) {
        if (on_way[site]++ == 0) {
          found_[site].retained.bytes += retention_.of[node].bytes;
          found_[site].retained.blocks += retention_.of[node].blocks;
        }
        path.emplace_back(node, true);
      }
      for (uint32_t next = child[node]; next != kNoNode; next = sibling[next]) {
        path.emplace_back(next, false);
      }
    }
  }

  // Where only one block of a site leads to blocks of others, all that the site retains of
  // these is dominated by that block: every way leaves the site there for the last time.
  std::vector<uint32_t> SitesThatMayShare() const {
    std::vector<bool> may(found_.size());
    std::vector<uint32_t> leading(found_.size());
    for (uint32_t node = 0; node < graph_.size(); ++node) {
      const uint32_t site = site_of_[node];
      if (site == kNoSite || may[site]) continue;
      if (found_[site].own.blocks < 2) continue;
      for (uint64_t i = graph_.degree(node); i-- > 0;) {
        if (site_of_[graph_.next(node, i)] == site) continue;
        if (++leading[site] == 2) may[site] = true;
        break;
      }
    }
    std::vector<uint32_t> open;
    for (uint32_t site = 0; site < found_.size(); ++site) {
      if (may[site]) open.push_back(site);
    }
    return open;
  }

  // Exact, for at most kBits sites.
  void Together(std::pair<const uint32_t*, size_t> sites);

  const RetentionGraph& graph_;
  const Retention& retention_;
  std::vector<RetainingSite> found_;
  std::vector<uint32_t> site_of_;  // by node, index in found_
};

// reach[node]: bit i is set when a way leads there that passes no block of the i-th site.
void Finder::Together(std::pair<const uint32_t*, size_t> sites) {
  std::vector<uint64_t> bits(found_.size());  // by site
  for (size_t i = 0; i < sites.second; ++i) bits[sites.first[i]] = uint64_t{1} << i;
  const auto bit = [&](uint32_t node) {
    return site_of_[node] == kNoSite ? 0 : bits[site_of_[node]];
  };
  std::vector<uint64_t> reach(graph_.size());
  std::vector<bool> waits(graph_.size());
  // Breadth first; a node that can be reached in more ways than it was known to be waits again.
  std::vector<uint32_t> round = {0}, next_round;
  reach[0] = UINT64_MAX;
  while (!round.empty()) {
    for (const uint32_t node : round) {
      waits[node] = false;
      for (uint64_t j = 0, degree = graph_.degree(node); j < degree; ++j) {
        const uint32_t to = graph_.next(node, j);
        const uint64_t now = reach[to] | (reach[node] & ~bit(to));
        if (now == reach[to]) continue;
        reach[to] = now;
        if (waits[to]) continue;
        waits[to] = true;
        next_round.push_back(to);
      }
    }
    round.swap(next_round);
    next_round.clear();
  }
  std::vector<LeakAmount> retained(sites.second);
  const uint64_t all = sites.second == kBits ? UINT64_MAX : (uint64_t{1} << sites.second) - 1;
  for (uint32_t block = 0; block < graph_.heap().size(); ++block) {
    for (uint64_t without = all & ~reach[graph_.NodeOf(block)]; without != 0;
         without &= without - 1) {
      LeakAmount& amount = retained[static_cast<size_t>(__builtin_ctzll(without))];
      amount.bytes += graph_.heap().blocks().bytes(block);
      ++amount.blocks;
    }
  }
  for (size_t i = 0; i < sites.second; ++i) {
    found_[sites.first[i]].retained = retained[i];
    found_[sites.first[i]].exact = true;
  }
}

}  // namespace

std::vector<RetainingSite> FindRetainingSites(const RetentionGraph& graph,
                                              const Retention& retention,
                                              const std::vector<BlockSite>& sites,
                                              uint64_t most_steps) {
  return Finder(graph, retention, sites).Find(most_steps);
}

}  // namespace memtrace::report::leak
