#include "tests/report/history.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/report/trace_builder.h"

namespace memtrace::report {

using format::AllocFunction;

std::vector<Action> MakeHistory(const HistoryOptions& options, std::mt19937_64& random) {
  std::vector<Action> history;
  std::vector<uint64_t> free_addresses;
  for (int i = 0; i < options.addresses; ++i) {
    const uint64_t base = options.scattered ? random() % (uint64_t{1} << 30) << 16 : 0x10000;
    free_addresses.push_back(base + i * 0x110);
  }
  std::vector<uint64_t> live;  // not in the middle of a realloc
  std::vector<uint64_t> pending(options.threads + 1);
  std::vector<int> asleep_until(options.threads + 1);
  uint64_t now = 1000;
  const auto take = [&](std::vector<uint64_t>& from) {
    const size_t i = random() % from.size();
    const uint64_t address = from[i];
    from[i] = from.back();
    from.pop_back();
    return address;
  };
  const auto chance = [&](double p) {
    return static_cast<double>(random() % 1'000'000) < p * 1e6;
  };
  const auto frees_of_four = [&]() -> unsigned {
    if (!options.large) return 2;
    return static_cast<int>(history.size()) < options.actions / 2 ? 1 : 3;
  };
  for (int i = 0; static_cast<int>(history.size()) < options.actions; ++i) {
    const uint32_t thread = 1 + random() % options.threads;
    if (asleep_until[thread] > i) continue;
    now += 1 + random() % options.longest_step_ns;
    Action action{};
    action.thread = thread;
    action.time_ns = now;
    action.size = random() % 8 == 0 ? random() % 100'000 : random() % 200;
    action.waste = random() % 25;
    action.site = 1 + random() % options.sites;
    if (pending[thread] != 0) {
      action.kind = Action::kResult;
      action.old_address = pending[thread];
      const unsigned how = random() % 8;
      if (how == 0 && (action.size == 0 || options.awkward_reallocs)) {
        action.address = 0;  // failed; with size 0 it freed
        if (action.size == 0) {
          free_addresses.push_back(action.old_address);
        } else {
          live.push_back(action.old_address);
        }
      } else if (how < 4 || free_addresses.empty()) {
        action.address = action.old_address;
        live.push_back(action.address);
      } else {
        action.address = take(free_addresses);
        live.push_back(action.address);
        free_addresses.push_back(action.old_address);
      }
      pending[thread] = 0;
    } else if (free_addresses.empty() || (!live.empty() && random() % 4 < frees_of_four())) {
      if (live.empty()) continue;
      action.address = take(live);
      if (options.reallocs && random() % 4 == 0) {
        action.kind = Action::kIntent;
        pending[thread] = action.address;
      } else {
        action.kind = Action::kFree;
        free_addresses.push_back(action.address);
      }
    } else {
      action.kind = Action::kAlloc;
      action.calloc = random() % 4 == 0;
      if (options.failures && random() % 64 == 0) {
        action.address = 0;
      } else {
        action.address = take(free_addresses);
        live.push_back(action.address);
      }
    }
    history.push_back(action);
    if (chance(options.sleep_chance)) asleep_until[thread] = i + options.sleep_actions;
  }
  for (uint32_t thread = 1; thread <= pending.size() - 1 && !options.awkward_reallocs; ++thread) {
    if (pending[thread] == 0) continue;
    Action action{};
    action.kind = Action::kResult;
    action.thread = thread;
    action.time_ns = ++now;
    action.address = action.old_address = pending[thread];
    action.size = 1;
    action.site = 1;
    history.push_back(action);
  }
  return history;
}

std::string TraceOf(const std::vector<Action>& history, const TraceOptions& options,
                    std::mt19937_64& random) {
  const auto chance = [&](double p) {
    return static_cast<double>(random() % 1'000'000) < p * 1e6;
  };
  TraceBuilder::Options builder_options;
  if (options.stamp_changes_of_owner) {
    builder_options.stamp_rule = format::StampRule::kChangeOfOwner;
  }
  TraceBuilder trace(builder_options);
  std::map<uint32_t, std::map<uint32_t, bool>> defined;
  std::map<uint64_t, uint32_t> owner;  // of each address
  for (const Action& action : history) {
    ThreadScript& thread = trace.Thread(action.thread, 100 + action.thread, "t", action.time_ns);
    // Two ticks to a step of time, so that a stamp fits on either side.
    const bool changed =
        action.address != 0 && std::exchange(owner[action.address], action.thread) != action.thread;
    if (chance(options.stamp_before) || (changed && options.stamp_changes_of_owner)) {
      thread.At(action.time_ns);
    }
    if (action.site != 0 && !defined[action.thread][action.site]) {
      defined[action.thread][action.site] = true;
      thread.Node(action.site, PcOf(action.site));
    }
    switch (action.kind) {
      case Action::kAlloc:
        if (action.calloc) {
          thread.Calloc(action.address, action.size, action.site, action.waste);
        } else {
          thread.Malloc(action.address, action.size, action.site, action.waste);
        }
        break;
      case Action::kFree: thread.Free(action.address); break;
      case Action::kIntent: thread.ReallocIntent(action.address); break;
      case Action::kResult:
        thread.ReallocResult(action.address, action.size, action.site, action.waste);
        break;
    }
    if (chance(options.stamp_after)) thread.At(action.time_ns);
    if (chance(options.flush)) thread.Flush(action.time_ns);
  }
  return trace.Build();
}

Truth TruthOf(const std::vector<Action>& history) {
  Truth truth;
  std::map<uint32_t, uint64_t> last_alloc;  // by thread
  std::map<uint32_t, TrueBlock> limbo;      // by thread
  uint64_t live_bytes = 0;
  const auto alloc = [&](const Action& action, int function) {
    ++truth.allocations;
    truth.bytes_allocated += action.size;
    truth.wasted += action.waste;
    TrueSite& site = truth.sites[{action.site, function}];
    ++site.allocations;
    ++site.live_blocks;
    site.bytes_allocated += action.size;
    site.live_bytes += action.size;
    site.wasted += action.waste;
    site.peak_bytes = std::max(site.peak_bytes, site.live_bytes);
    site.largest = std::max<uint64_t>(site.largest, action.size);
    live_bytes += action.size;
    last_alloc[action.thread] = action.address;
    truth.live[action.address] = {action.size,   action.waste, action.time_ns,
                                  action.thread, action.site,  function == 2};
    if (live_bytes > truth.peak_bytes) {
      truth.peak_bytes = live_bytes;
      truth.peak_time_ns = action.time_ns;
      truth.peak_blocks = truth.live.size() + limbo.size();
      for (auto& [id, each] : truth.sites) {
        each.bytes_at_peak = each.live_bytes;
        each.blocks_at_peak = each.live_blocks;
      }
    }
  };
  std::map<uint64_t, int> function_of;  // by address
  const auto release = [&](const TrueBlock& block, int function, uint32_t thread, bool temporary) {
    ++truth.frees;
    TrueSite& site = truth.sites[{block.site, function}];
    ++site.frees;
    --site.live_blocks;
    site.live_bytes -= block.size;
    live_bytes -= block.size;
    site.freed_by_other += block.thread != thread;
    site.temporary += temporary;
    truth.temporary += temporary;
  };
  std::map<uint32_t, int> limbo_function;
  for (const Action& action : history) {
    switch (action.kind) {
      case Action::kAlloc:
        if (action.address == 0) {
          ++truth.failed;
          break;
        }
        function_of[action.address] = action.calloc ? 2 : 1;
        alloc(action, action.calloc ? 2 : 1);
        break;
      case Action::kFree: {
        const TrueBlock block = truth.live.at(action.address);
        truth.live.erase(action.address);
        release(block, function_of[action.address], action.thread,
                last_alloc[block.thread] == action.address);
        break;
      }
      case Action::kIntent:
        limbo[action.thread] = truth.live.at(action.address);
        limbo_function[action.thread] = function_of[action.address];
        truth.live.erase(action.address);
        break;
      case Action::kResult: {
        const TrueBlock block = limbo.at(action.thread);
        const int function = limbo_function[action.thread];
        limbo.erase(action.thread);
        if (action.address == 0 && action.size != 0) {
          ++truth.failed;
          truth.live[action.old_address] = block;
          break;
        }
        release(block, function, action.thread,
                action.address == 0 && last_alloc[block.thread] == action.old_address);
        if (action.address == 0) break;
        ++truth.reallocations;
        function_of[action.address] = 3;
        alloc(action, 3);
        break;
      }
    }
  }
  for (const auto& [thread, block] : limbo) {
    // The trace ends between intent and result: still there.
    for (auto action = history.rbegin(); action != history.rend(); ++action) {
      if (action->thread == thread && action->kind == Action::kIntent) {
        truth.live[action->address] = block;
        break;
      }
    }
  }
  for (auto& [address, block] : truth.live) {
    truth.sites[{block.site, function_of[address]}].live_wasted += block.waste;
  }
  return truth;
}

}  // namespace memtrace::report
