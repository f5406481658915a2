#include "tests/report/history.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/report/trace_builder.h"

namespace memtrace::report {

using format::AllocFunction;

std::vector<Deed> MakeHistory(const HistoryOptions& options, std::mt19937_64& random) {
  std::vector<Deed> history;
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
    return static_cast<int>(history.size()) < options.deeds / 2 ? 1 : 3;
  };
  for (int i = 0; static_cast<int>(history.size()) < options.deeds; ++i) {
    const uint32_t thread = 1 + random() % options.threads;
    if (asleep_until[thread] > i) continue;
    now += 1 + random() % options.longest_step_ns;
    Deed deed{};
    deed.thread = thread;
    deed.time_ns = now;
    deed.size = random() % 8 == 0 ? random() % 100'000 : random() % 200;
    deed.waste = random() % 25;
    deed.site = 1 + random() % options.sites;
    if (pending[thread] != 0) {
      deed.kind = Deed::kResult;
      deed.old_address = pending[thread];
      const unsigned how = random() % 8;
      if (how == 0 && (deed.size == 0 || options.awkward_reallocs)) {
        deed.address = 0;  // failed; with size 0 it freed
        if (deed.size == 0) {
          free_addresses.push_back(deed.old_address);
        } else {
          live.push_back(deed.old_address);
        }
      } else if (how < 4 || free_addresses.empty()) {
        deed.address = deed.old_address;
        live.push_back(deed.address);
      } else {
        deed.address = take(free_addresses);
        live.push_back(deed.address);
        free_addresses.push_back(deed.old_address);
      }
      pending[thread] = 0;
    } else if (free_addresses.empty() || (!live.empty() && random() % 4 < frees_of_four())) {
      if (live.empty()) continue;
      deed.address = take(live);
      if (options.reallocs && random() % 4 == 0) {
        deed.kind = Deed::kIntent;
        pending[thread] = deed.address;
      } else {
        deed.kind = Deed::kFree;
        free_addresses.push_back(deed.address);
      }
    } else {
      deed.kind = Deed::kAlloc;
      deed.calloc = random() % 4 == 0;
      deed.address = take(free_addresses);
      live.push_back(deed.address);
    }
    history.push_back(deed);
    if (chance(options.sleep_chance)) asleep_until[thread] = i + options.sleep_deeds;
  }
  for (uint32_t thread = 1; thread <= pending.size() - 1 && !options.awkward_reallocs; ++thread) {
    if (pending[thread] == 0) continue;
    Deed deed{};
    deed.kind = Deed::kResult;
    deed.thread = thread;
    deed.time_ns = ++now;
    deed.address = deed.old_address = pending[thread];
    deed.size = 1;
    deed.site = 1;
    history.push_back(deed);
  }
  return history;
}

std::string TraceOf(const std::vector<Deed>& history, const TraceOptions& options,
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
  for (const Deed& deed : history) {
    ThreadScript& thread = trace.Thread(deed.thread, 100 + deed.thread, "t", deed.time_ns);
    // Two ticks to a step of time, so that a stamp fits on either side.
    const bool changed =
        deed.address != 0 && std::exchange(owner[deed.address], deed.thread) != deed.thread;
    if (chance(options.stamp_before) || (changed && options.stamp_changes_of_owner)) {
      thread.At(deed.time_ns);
    }
    if (deed.site != 0 && !defined[deed.thread][deed.site]) {
      defined[deed.thread][deed.site] = true;
      thread.Node(deed.site, PcOf(deed.site));
    }
    switch (deed.kind) {
      case Deed::kAlloc:
        if (deed.calloc) {
          thread.Calloc(deed.address, deed.size, deed.site, deed.waste);
        } else {
          thread.Malloc(deed.address, deed.size, deed.site, deed.waste);
        }
        break;
      case Deed::kFree: thread.Free(deed.address); break;
      case Deed::kIntent: thread.ReallocIntent(deed.address); break;
      case Deed::kResult:
        thread.ReallocResult(deed.address, deed.size, deed.site, deed.waste);
        break;
    }
    if (chance(options.stamp_after)) thread.At(deed.time_ns);
    if (chance(options.flush)) thread.Flush(deed.time_ns);
  }
  return trace.Build();
}

Truth TruthOf(const std::vector<Deed>& history) {
  Truth truth;
  std::map<uint32_t, uint64_t> last_alloc;  // by thread
  std::map<uint32_t, TrueBlock> limbo;      // by thread
  uint64_t live_bytes = 0;
  const auto alloc = [&](const Deed& deed, int function) {
    ++truth.allocations;
    truth.bytes_allocated += deed.size;
    truth.wasted += deed.waste;
    TrueSite& site = truth.sites[{deed.site, function}];
    ++site.allocations;
    ++site.live_blocks;
    site.bytes_allocated += deed.size;
    site.live_bytes += deed.size;
    site.wasted += deed.waste;
    site.peak_bytes = std::max(site.peak_bytes, site.live_bytes);
    site.largest = std::max<uint64_t>(site.largest, deed.size);
    live_bytes += deed.size;
    last_alloc[deed.thread] = deed.address;
    truth.live[deed.address] = {deed.size,   deed.waste, deed.time_ns,
                                deed.thread, deed.site,  function == 2};
    if (live_bytes > truth.peak_bytes) {
      truth.peak_bytes = live_bytes;
      truth.peak_time_ns = deed.time_ns;
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
  for (const Deed& deed : history) {
    switch (deed.kind) {
      case Deed::kAlloc:
        function_of[deed.address] = deed.calloc ? 2 : 1;
        alloc(deed, deed.calloc ? 2 : 1);
        break;
      case Deed::kFree: {
        const TrueBlock block = truth.live.at(deed.address);
        truth.live.erase(deed.address);
        release(block, function_of[deed.address], deed.thread,
                last_alloc[block.thread] == deed.address);
        break;
      }
      case Deed::kIntent:
        limbo[deed.thread] = truth.live.at(deed.address);
        limbo_function[deed.thread] = function_of[deed.address];
        truth.live.erase(deed.address);
        break;
      case Deed::kResult: {
        const TrueBlock block = limbo.at(deed.thread);
        const int function = limbo_function[deed.thread];
        limbo.erase(deed.thread);
        if (deed.address == 0 && deed.size != 0) {
          ++truth.failed;
          truth.live[deed.old_address] = block;
          break;
        }
        release(block, function, deed.thread,
                deed.address == 0 && last_alloc[block.thread] == deed.old_address);
        if (deed.address == 0) break;
        ++truth.reallocations;
        function_of[deed.address] = 3;
        alloc(deed, 3);
        break;
      }
    }
  }
  for (const auto& [thread, block] : limbo) {
    // The trace ends between intent and result: still there.
    for (auto deed = history.rbegin(); deed != history.rend(); ++deed) {
      if (deed->thread == thread && deed->kind == Deed::kIntent) {
        truth.live[deed->address] = block;
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
