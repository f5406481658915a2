#include "report/tree/merged_sites.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "format/trace_format.h"
#include "report/leak/leak_scans.h"
#include "report/tree/add_totals.h"

namespace memtrace::report {
namespace {

constexpr uint32_t kKeptFlags =
    format::kModuleExecutable | format::kModuleTracer | format::kModuleVdso;

void AddSite(const Site& from, Site* to) {
  const bool first = to->allocations == 0;
  const bool first_live = to->live_blocks == 0;
  to->allocations += from.allocations;
  to->frees += from.frees;
  to->bytes_allocated += from.bytes_allocated;
  to->live_bytes += from.live_bytes;
  to->live_blocks += from.live_blocks;
  to->peak_bytes = std::max(to->peak_bytes, from.peak_bytes);
  to->bytes_at_peak += from.bytes_at_peak;
  to->blocks_at_peak += from.blocks_at_peak;
  to->wasted_bytes += from.wasted_bytes;
  to->live_wasted_bytes += from.live_wasted_bytes;
  to->temporary += from.temporary;
  to->freed_by_other_thread += from.freed_by_other_thread;
  to->largest_bytes = std::max(to->largest_bytes, from.largest_bytes);
  to->first_time_ns = first ? from.first_time_ns : std::min(to->first_time_ns, from.first_time_ns);
  to->last_time_ns = std::max(to->last_time_ns, from.last_time_ns);
  if (from.live_blocks > 0) {
    to->live_first_time_ns = first_live
                                 ? from.live_first_time_ns
                                 : std::min(to->live_first_time_ns, from.live_first_time_ns);
    to->live_last_time_ns = std::max(to->live_last_time_ns, from.live_last_time_ns);
  }
  AddSamples(from.bytes_sample, &to->bytes_sample);
  AddSamples(from.live_sample, &to->live_sample);
}

}  // namespace

void NumberRuns::Add(uint32_t number) {
  if (!runs_.empty() && number < runs_.back().second) return;
  if (!runs_.empty() && number == runs_.back().second) {
    ++runs_.back().second;
  } else {
    runs_.emplace_back(number, number + 1);
  }
}

uint64_t NumberRuns::size() const {
  uint64_t size = 0;
  for (const auto& [begin, end] : runs_) size += end - begin;
  return size;
}

uint64_t NumberRuns::SizeOfUnion(std::span<const NumberRuns* const> sets) {
  if (sets.size() == 1) return sets.front()->size();
  std::vector<std::pair<uint32_t, uint32_t>> all;
  for (const NumberRuns* set : sets) all.insert(all.end(), set->runs_.begin(), set->runs_.end());
  std::sort(all.begin(), all.end());
  uint64_t size = 0;
  uint32_t counted = 0;  // all below are
  for (const auto& [begin, end] : all) {
    if (end > counted) size += end - std::max(begin, counted);
    counted = std::max(counted, end);
  }
  return size;
}

uint64_t MergedExecutable::ImagesOf(std::span<const Site* const> group) const {
  std::vector<const NumberRuns*> sets;
  for (const Site* site : group) {
    sets.push_back(&images_of[static_cast<size_t>(site - analysis.sites.data())]);
  }
  return NumberRuns::SizeOfUnion(sets);
}

// The stacks of one trace in the merged table.
class MergedSites::Translation {
 public:
  Translation(MergedSites* merged, const AnalyzedTrace& trace)
      : merged_(merged), stacks_(*trace.stacks), modules_(trace.analysis.modules),
        known_(stacks_.size() + 1), is_known_(stacks_.size() + 1) {
    for (const ModuleInfo& module : trace.analysis.modules) {
      files_[&module] = merged->FileOf(module);
    }
    is_known_[0] = true;  // no stack
  }

  StackId Of(StackId id) {
    path_.clear();
    for (; !is_known_[id.value]; id = stacks_.node(id).parent) path_.push_back(id);
    StackId parent = known_[id.value];
    for (; !path_.empty(); path_.pop_back()) {
      const StackId inner = path_.back();
      parent = Intern(parent, stacks_.node(inner));
      known_[inner.value] = parent;
      is_known_[inner.value] = true;
    }
    return parent;
  }

 private:
  StackId Intern(StackId parent, const StackNode& node) {
    if (node.is_marker()) return merged_->stacks_.Intern(parent, node.pc, node.instance);
    const ModuleInfo* const module = modules_.Find(node);
    // Code outside of every file: an address means something in its own process only.
    if (module == nullptr) return merged_->stacks_.Intern(parent, node.pc, 0);
    return merged_->stacks_.Intern(parent, node.pc - module->bias, files_.at(module));
  }

  MergedSites* const merged_;
  const StackTable& stacks_;
  const ModuleIndex modules_;
  absl::flat_hash_map<const ModuleInfo*, uint32_t> files_;
  std::vector<StackId> known_;    // by the trace's id
  std::vector<bool> is_known_;
  std::vector<StackId> path_;
};

uint32_t MergedSites::FileOf(const ModuleInfo& module) {
  const uint32_t flags = module.flags & kKeptFlags;
  const auto [found, is_new] = file_index_.try_emplace({module.path, module.build_id, flags}, 0);
  if (!is_new) return found->second;
  // An instance number: not 0, and not that of markers.
  uint32_t id = static_cast<uint32_t>(files_.modules.size()) + 1;
  if (id >= format::kNoModule) ++id;
  ModuleInfo file;
  file.id = ModuleId{id};
  file.flags = flags;
  file.path = module.path;
  file.build_id = module.build_id;
  files_.modules.push_back(std::move(file));
  return found->second = id;
}

size_t MergedSites::Add(const AnalyzedTrace& trace) {
  const Analysis& from = trace.analysis;
  const auto [found, is_new] = executable_index_.try_emplace(
      {from.process.executable, ProcessBuildId(from.process, from.modules)}, executables_.size());
  if (is_new) {
    MergedExecutable& made = executables_.emplace_back();
    made.path = from.process.executable;
    made.build_id = found->first.second;
    made.analysis.process = from.process;
    made.analysis.process.command.clear();
  }
  MergedExecutable& to = executables_[found->second];
  const uint32_t number = to.images++;
  to.dropped_events += from.coverage.dropped_events;
  to.most_live_bytes = std::max(to.most_live_bytes, from.totals.live_bytes);
  to.most_peak_bytes = std::max(to.most_peak_bytes, from.totals.peak_live_bytes);
  if (!from.process.waste_is_known()) to.analysis.process.allocator = from.process.allocator;
  to.analysis.process.sample_bytes =
      std::max(to.analysis.process.sample_bytes, from.process.sample_bytes);
  to.analysis.coverage.events += from.coverage.events;
  AddTotals(from.totals, &to.analysis.totals);
  to.exact_images += from.process.sample_bytes == 0 ? 1 : 0;
  to.analysis.totals.peak_live_bytes += from.totals.peak_live_bytes;
  to.analysis.totals.peak_live_blocks += from.totals.peak_live_blocks;
  Translation translation(this, trace);
  for (const Site& site : from.sites) {
    const StackId stack = translation.Of(site.stack);
    const auto [at, is_new_site] = to.index.try_emplace(
        {stack, static_cast<uint32_t>(site.function)}, to.analysis.sites.size());
    if (is_new_site) {
      Site& added = to.analysis.sites.emplace_back();
      added.stack = stack;
      added.function = site.function;
      to.images_of.emplace_back();
    }
    AddSite(site, &to.analysis.sites[at->second]);
    to.images_of[at->second].Add(number);
  }
  if (const LeakScan* scan = leak::ChooseScan(from, 0); scan != nullptr) {
    for (const LossRecord& record : scan->records) {
      if (record.kind != LeakKind::kPossible || record.blocks == 0) continue;
      LeakAmount& lost = to.possibly_lost[{translation.Of(record.stack), record.function}];
      lost.bytes += record.bytes;
      lost.blocks += record.blocks;
    }
  }
  return found->second;
}

// A site's samples are of some of its images; what the others have is the rest.
void MergedSites::CompleteSamples() {
  const auto complete = [](uint64_t all, SampledSum* sum) {
    sum->exact = std::max(0.0, static_cast<double>(all) - std::round(sum->estimate));
  };
  for (MergedExecutable& executable : executables_) {
    if (executable.exact_images == 0 || executable.exact_images == executable.images) continue;
    Totals& totals = executable.analysis.totals;
    complete(totals.bytes_allocated, &totals.bytes_sample);
    complete(totals.live_bytes, &totals.live_sample);
    for (Site& site : executable.analysis.sites) {
      complete(site.bytes_allocated, &site.bytes_sample.Make());
      complete(site.live_bytes, &site.live_sample.Make());
    }
  }
}

std::vector<StackId> MergedSites::Translate(const AnalyzedTrace& trace,
                                            std::span<const StackId> stacks) {
  Translation translation(this, trace);
  std::vector<StackId> ours;
  ours.reserve(stacks.size());
  for (const StackId stack : stacks) ours.push_back(translation.Of(stack));
  return ours;
}

std::vector<StackId> MergedSites::AllStacks() const {
  absl::flat_hash_set<StackId> seen;
  std::vector<StackId> all;
  for (const MergedExecutable& executable : executables_) {
    for (const Site& site : executable.analysis.sites) {
      if (seen.insert(site.stack).second) all.push_back(site.stack);
    }
  }
  return all;
}

}  // namespace memtrace::report
