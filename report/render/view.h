// ReportView: what every format shows, computed once: the sites that the user
// asked for, unfreed blocks grouped by stack, sites grouped by caller.
//
// One thread. Refers to the Analysis and the SiteSymbols; they outlive it.

#ifndef MEMTRACE_REPORT_RENDER_VIEW_H_
#define MEMTRACE_REPORT_RENDER_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/findings/analysis.h"
#include "report/leak/leak_kinds.h"
#include "report/names/frames_filter.h"
#include "report/names/site_symbols.h"
#include "report/render/grouping.h"

namespace memtrace::report::render {

// Sites that a reader takes for one.
struct SiteGroup {
  std::vector<const Site*> sites;  // never empty
  StackId stack;                   // of the site that weighs most
  // Of the first site; callers() may have sites of several.
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
  uint64_t live_bytes = 0, live_blocks = 0;
  uint64_t bytes_at_peak = 0, blocks_at_peak = 0;
  uint64_t peak_bytes = 0;  // sum of the sites' own peaks: exact for one site, else a bound
  uint64_t wasted_bytes = 0, temporary = 0;
  uint64_t live_first_time_ns = 0, live_last_time_ns = 0;
  OnDemand<SampledSum> bytes_sample, live_sample;  // as in Site

  void Add(const Site& site);
};

enum class SortColumn {
  kTotal, kWasted, kLive, kBlocks, kPeak, kAllocations, kFrees, kTemporary, kCaller,
};
// The names --sort takes: "total", "wasted", ...
absl::StatusOr<SortColumn> ParseSortColumn(absl::string_view name);
absl::string_view SortColumnName(SortColumn column);
std::vector<absl::string_view> SortColumnNames();

class StackNumbers;

// Sites by their frames. POSIX extended regular expressions; empty: any.
struct FrameFilter {
  std::string match;  // a frame's function, file or module
  // One frame must match all of these that are given.
  std::string function, file, module;

  bool all() const { return match.empty() && function.empty() && file.empty() && module.empty(); }
  // "that match /x/ and that have a frame of function /y/, file /z/", for a sentence.
  std::string Text() const;
};

class ReportView {
 public:
  // Sites without a frame that the filter likes are left out. Errors name the option.
  static absl::StatusOr<ReportView> Create(const Analysis& analysis, const SiteSymbols& symbols,
                                           const FrameFilter& filter);
  // Shows all sites, which are grouped already.
  static ReportView Create(const Analysis& analysis, const SiteSymbols& symbols,
                           const Grouping& grouping);
  static absl::StatusOr<ReportView> Create(const Analysis& analysis, const SiteSymbols& symbols,
                                           const std::string& match) {
    return Create(analysis, symbols, FrameFilter{.match = match});
  }

  const Analysis& analysis() const { return *analysis_; }
  // The trace is of a sample: sizes and counts of the heap are estimates.
  bool sampled() const { return analysis_->process.sample_bytes != 0; }
  const SiteSymbols& symbols() const { return *symbols_; }
  const FrameFilter& filter() const { return filter_; }
  bool filtered() const { return !filter_.all(); }

  const std::vector<const Site*>& sites() const { return sites_; }  // largest total first
  const std::vector<SiteGroup>& unfreed() const { return unfreed_; }  // largest first
  const std::vector<SiteGroup>& callers() const { return callers_; }  // largest total first
  const std::vector<const MappingSite*>& mappings() const { return mappings_; }

  // Which scan and which kinds of its records; by default those of memcheck. `scan` 0: the
  // last. NotFound: there is no such scan. FailedPrecondition: it says nothing, and why.
  // `changes_alone`: what the scan was not asked for, such as records that are not new, is not
  // shown even where there are `kinds`.
  absl::Status ChooseLeaks(uint32_t scan, std::optional<LeakKindSet> kinds,
                           bool changes_alone = false);
  // nullptr: nothing is known of what is reachable.
  const LeakScan* leak_scan() const { return leak_scan_; }
  // The records of leak_scan() that are to be shown and match, largest first; the number of
  // each is that of memcheck: 1 the smallest of all.
  struct Loss {
    const LossRecord* record;
    size_t number;
  };
  // `everything`: records of every kind, unless the user chose kinds, and suppressed ones as well.
  // Records of the runtime, and what the scan was not asked for, are among them with `everything`,
  // or where the user chose kinds.
  std::vector<Loss> Losses(bool everything) const;
  // How many records match but are left out by Losses(false), by the first of
  // these reasons that holds.
  struct HiddenLosses {
    size_t suppressed = 0, by_change = 0, by_kind = 0, of_runtime = 0;
  };
  HiddenLosses CountHidden() const;  // of leak_scan()
  bool changes_alone() const { return changes_alone_; }

  // The sums over the sites that match. Of all sites of a sample the totals, from which the sums
  // may differ a little: each site is rounded.
  uint64_t unfreed_bytes() const { return unfreed_bytes_; }
  uint64_t unfreed_blocks() const { return unfreed_blocks_; }

  // The number that is added to an offset in a module to get an address, of its
  // first load; 0: not known.
  uint64_t BiasOf(const std::string& module) const {
    const auto known = biases_.find(module);
    return known == biases_.end() ? 0 : known->second;
  }

  std::vector<const Frame*> Frames(StackId stack) const;
  // The frame a table names for a stack; nullptr when there is no stack.
  const Frame* Caller(StackId stack) const;
  std::string CallerText(StackId stack) const;  // "function file:line", not escaped
  // Survives rebuilds: no lines, addresses, sizes. Sixteen hexadecimal digits.
  std::string Fingerprint(StackId stack, format::AllocFunction function) const;
  // The same with lines, so that it holds for one build only.
  std::string StrictFingerprint(StackId stack, format::AllocFunction function) const;

  // The module of a frame that has no function because its file is gone or another build now;
  // empty: there is none. Such a stack is another than it was when the functions had names.
  std::string NamelessModule(StackId stack) const;

  bool Matches(StackId stack) const;
  // nullptr: it is not of the selection.
  const ThreadSummary* ThreadOf(ThreadId id) const;

  // JSON names stacks by these numbers where they are set, instead of writing each out.
  void set_stack_numbers(StackNumbers* numbers) { stack_numbers_ = numbers; }
  StackNumbers* stack_numbers() const { return stack_numbers_; }
  // The faults of a site, from Analysis::fault_details; nullptr: none was seen.
  const FaultSite* FaultsOf(StackId stack, format::AllocFunction function) const;
  // The resident memory of a site at the end; nullptr: nothing was live, or nothing is known.
  const ResidentSite* ResidentOf(StackId stack, format::AllocFunction function) const;
  // The same when most memory was resident.
  const ResidentSite* ResidentAtPeak(StackId stack, format::AllocFunction function) const;

 private:
  ReportView(const Analysis& analysis, const SiteSymbols& symbols);
  absl::Status MatchFrames();
  // Whether the scan was not asked for it, and the user does not see it all the same.
  bool IsHiddenByChange(const LossRecord& record) const;
  void Take(const Grouping& grouping);

  const Analysis* analysis_ = nullptr;
  const SiteSymbols* symbols_ = nullptr;
  const LeakScan* leak_scan_ = nullptr;
  StackNumbers* stack_numbers_ = nullptr;
  std::optional<LeakKindSet> leak_kinds_;
  bool changes_alone_ = false;
  FrameFilter filter_;
  std::vector<bool> frame_matches_, frame_fits_;  // by FrameId: `match`, the others; empty: all
  std::vector<const Site*> sites_;
  std::vector<SiteGroup> unfreed_;
  std::vector<SiteGroup> callers_;
  std::vector<const MappingSite*> mappings_;
  absl::flat_hash_map<std::string, uint64_t> biases_;  // by the module's path
  absl::flat_hash_map<uint32_t, const ThreadSummary*> threads_;  // by ThreadId
  absl::flat_hash_map<std::pair<uint32_t, uint8_t>, const FaultSite*> fault_sites_;
  using ResidentSites = absl::flat_hash_map<std::pair<uint32_t, uint8_t>, const ResidentSite*>;
  ResidentSites resident_sites_, resident_at_peak_;
  uint64_t unfreed_bytes_ = 0;
  uint64_t unfreed_blocks_ = 0;
};

// Largest first (kCaller: by name); equal ones by total bytes, then by name.
void SortGroups(const ReportView& view, SortColumn column, std::vector<SiteGroup>* groups);
// The sites of `view`, one by one, in the same order.
std::vector<const Site*> SortedSites(const ReportView& view, SortColumn column);

absl::string_view FunctionName(format::AllocFunction function);  // "calloc"
absl::string_view MappingKindName(MappingSite::Kind kind);       // "heap_growth"

// "file:line", or the module's name where that is not known and FrameName() does
// not hold it; else empty.
std::string PlaceText(const Frame& frame);
std::string FrameName(const Frame& frame);  // the function, or "module+0xoffset"

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_VIEW_H_
