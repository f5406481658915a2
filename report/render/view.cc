#include "report/render/view.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/base/path.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/leak/loss_records.h"
#include "report/names/fingerprint.h"
#include "report/render/regex.h"
#include "report/trace/event_decoder.h"

namespace memtrace::report::render {
namespace {

// The value in a map by stack and function; nullptr: there is none.
template <typename Map>
typename Map::mapped_type Find(const Map& map, StackId stack, format::AllocFunction function) {
  const auto at = map.find({stack.value, static_cast<uint8_t>(function)});
  return at == map.end() ? nullptr : at->second;
}

using format::AllocFunction;

constexpr std::pair<SortColumn, absl::string_view> kSortColumns[] = {
    {SortColumn::kTotal, "total"},           {SortColumn::kWasted, "wasted"},
    {SortColumn::kLive, "live"},             {SortColumn::kBlocks, "blocks"},
    {SortColumn::kPeak, "peak"},             {SortColumn::kAllocations, "allocations"},
    {SortColumn::kFrees, "frees"},           {SortColumn::kTemporary, "temporary"},
    {SortColumn::kCaller, "caller"},
};

uint64_t SortKey(const SiteGroup& group, SortColumn column) {
  switch (column) {
    case SortColumn::kTotal: return group.bytes_allocated;
    case SortColumn::kWasted: return group.wasted_bytes;
    case SortColumn::kLive: return group.live_bytes;
    case SortColumn::kBlocks: return group.live_blocks;
    case SortColumn::kPeak: return group.bytes_at_peak;
    case SortColumn::kAllocations: return group.allocations;
    case SortColumn::kFrees: return group.frees;
    case SortColumn::kTemporary: return group.temporary;
    case SortColumn::kCaller: return 0;
  }
  return 0;
}

}  // namespace

void SiteGroup::Add(const Site& site) {
  if (sites.empty()) {
    function = site.function;
    live_first_time_ns = UINT64_MAX;
  }
  if (sites.empty() || site.bytes_allocated > sites.front()->bytes_allocated) {
    stack = site.stack;
    sites.insert(sites.begin(), &site);
  } else {
    sites.push_back(&site);
  }
  allocations += site.allocations;
  frees += site.frees;
  bytes_allocated += site.bytes_allocated;
  live_bytes += site.live_bytes;
  live_blocks += site.live_blocks;
  bytes_at_peak += site.bytes_at_peak;
  blocks_at_peak += site.blocks_at_peak;
  peak_bytes += site.peak_bytes;
  wasted_bytes += site.wasted_bytes;
  temporary += site.temporary;
  AddSamples(site.bytes_sample, &bytes_sample);
  AddSamples(site.live_sample, &live_sample);
  if (site.live_blocks > 0) {
    live_first_time_ns = std::min(live_first_time_ns, site.live_first_time_ns);
    live_last_time_ns = std::max(live_last_time_ns, site.live_last_time_ns);
  }
}

absl::StatusOr<SortColumn> ParseSortColumn(absl::string_view name) {
  for (const auto& [column, text] : kSortColumns) {
    if (text == name) return column;
  }
  return absl::InvalidArgumentError(absl::StrCat("--sort: no column \"", name, "\"; there are ",
                                                 absl::StrJoin(SortColumnNames(), ", ")));
}

absl::string_view SortColumnName(SortColumn column) {
  for (const auto& [known, text] : kSortColumns) {
    if (known == column) return text;
  }
  return "";
}

std::vector<absl::string_view> SortColumnNames() {
  std::vector<absl::string_view> names;
  for (const auto& [column, text] : kSortColumns) names.push_back(text);
  return names;
}

absl::string_view FunctionName(AllocFunction function) {
  const char* name = report::NameOf(function);
  return name != nullptr ? name : "unknown function";
}

absl::string_view MappingKindName(MappingSite::Kind kind) {
  switch (kind) {
    case MappingSite::Kind::kMmap: return "mmap";
    case MappingSite::Kind::kBrk: return "brk";
    case MappingSite::Kind::kShm: return "shm";
    case MappingSite::Kind::kHeapGrowth: return "heap_growth";
    case MappingSite::Kind::kArenaGrowth: return "arena_growth";
    case MappingSite::Kind::kMappedBlock: return "mapped_block";
  }
  return "unknown";
}

std::string FrameName(const Frame& frame) {
  if (!frame.function.empty()) return frame.function;
  if (frame.module.empty()) return absl::StrFormat("0x%x", frame.offset);
  return absl::StrFormat("%s+0x%x", FileNameOf(frame.module), frame.offset);
}

std::string PlaceText(const Frame& frame) {
  if (!frame.file.empty()) {
    return frame.line != 0 ? absl::StrCat(frame.file, ":", frame.line) : frame.file;
  }
  // Where the name is the module's already, it is not said twice.
  if (frame.function.empty() || frame.module.empty()) return "";
  return std::string(FileNameOf(frame.module));
}

std::string FrameFilter::Text() const {
  std::vector<std::string> frame, parts;
  const auto add = [](absl::string_view what, const std::string& regex,
                      std::vector<std::string>* to) {
    if (!regex.empty()) to->push_back(absl::StrCat(what, " /", regex, "/"));
  };
  add("that match", match, &parts);
  add("function", function, &frame);
  add("file", file, &frame);
  add("module", module, &frame);
  if (!frame.empty()) {
    parts.push_back(absl::StrCat("that have a frame of ", absl::StrJoin(frame, ", ")));
  }
  return absl::StrJoin(parts, " and ");
}

absl::StatusOr<ReportView> ReportView::Create(const Analysis& analysis, const SiteSymbols& symbols,
                                              const FrameFilter& filter) {
  ReportView view(analysis, symbols);
  view.filter_ = filter;
  absl::Status status = view.MatchFrames();
  if (!status.ok()) return status;
  view.Take(GroupSites(analysis, symbols, [&](StackId stack) { return view.Matches(stack); }));
  return view;
}

ReportView ReportView::Create(const Analysis& analysis, const SiteSymbols& symbols,
                              const Grouping& grouping) {
  ReportView view(analysis, symbols);
  view.Take(grouping);
  return view;
}

ReportView::ReportView(const Analysis& analysis, const SiteSymbols& symbols)
    : analysis_(&analysis), symbols_(&symbols), leak_scan_(leak::ChooseScan(analysis, 0)) {
  for (const ThreadSummary& thread : analysis.threads) threads_[thread.id.value] = &thread;
  for (const ModuleInfo& module : analysis.modules) biases_.try_emplace(module.path, module.bias);
  for (const FaultSite& site : analysis.fault_details.sites) {
    fault_sites_[{site.stack.value, static_cast<uint8_t>(site.function)}] = &site;
  }
  const auto collect = [](const RssBridge* bridge, ResidentSites* sites) {
    if (bridge == nullptr) return;
    for (const ResidentSite& site : bridge->sites) {
      (*sites)[{site.stack.value, static_cast<uint8_t>(site.function)}] = &site;
    }
  };
  collect(analysis.resident.End(), &resident_sites_);
  collect(analysis.resident.Peak(), &resident_at_peak_);
}

const ResidentSite* ReportView::ResidentOf(StackId stack, format::AllocFunction function) const {
  return Find(resident_sites_, stack, function);
}

const ResidentSite* ReportView::ResidentAtPeak(StackId stack,
                                               format::AllocFunction function) const {
  return Find(resident_at_peak_, stack, function);
}

const ThreadSummary* ReportView::ThreadOf(ThreadId id) const {
  const auto at = threads_.find(id.value);
  return at == threads_.end() ? nullptr : at->second;
}

const FaultSite* ReportView::FaultsOf(StackId stack, format::AllocFunction function) const {
  return Find(fault_sites_, stack, function);
}

absl::Status ReportView::ChooseLeaks(uint32_t scan, std::optional<LeakKindSet> kinds,
                                     bool changes_alone) {
  leak_kinds_ = kinds;
  changes_alone_ = changes_alone;
  leak_scan_ = leak::ChooseScan(*analysis_, scan);
  if (scan == 0 || leak_scan_ != nullptr) return absl::OkStatus();
  std::vector<std::string> there;
  for (const LeakScan& one : analysis_->leak_scans) {
    if (one.number == scan) {
      const bool failed = one.state == LeakScan::State::kFailed;
      return absl::FailedPreconditionError(absl::StrCat(
          failed ? "the scan failed: " : "nothing is known of the scan: ", one.failure));
    }
    there.push_back(absl::StrCat(one.number, one.failure.empty() ? "" : " (", one.failure,
                                 one.failure.empty() ? "" : ")"));
  }
  return absl::NotFoundError(absl::StrCat(
      "--scan: no finished scan ", scan, " in the trace; there ",
      there.empty() ? "is none" : absl::StrCat("are: ", absl::StrJoin(there, ", "))));
}

bool ReportView::IsHiddenByChange(const LossRecord& record) const {
  return (changes_alone_ || !leak_kinds_.has_value()) && !leak::IsShown(record, leak_scan_->show);
}

std::vector<ReportView::Loss> ReportView::Losses(bool everything) const {
  std::vector<Loss> losses;
  if (leak_scan_ == nullptr) return losses;
  const LeakKindSet kinds =
      leak_kinds_.value_or(everything ? LeakKindSet::OfScans() : LeakKindSet::Default());
  for (size_t i = leak_scan_->records.size(); i-- > 0;) {
    const LossRecord& record = leak_scan_->records[i];
    if (record.suppressed && !everything) continue;
    if (record.of_runtime && !everything && !leak_kinds_.has_value()) continue;
    if (!everything && IsHiddenByChange(record)) continue;
    if (kinds.Has(record.kind) && Matches(record.stack)) losses.push_back({&record, i + 1});
  }
  return losses;
}

ReportView::HiddenLosses ReportView::CountHidden() const {
  HiddenLosses hidden;
  const LeakKindSet kinds = leak_kinds_.value_or(LeakKindSet::Default());
  for (const LossRecord& record : leak_scan_->records) {
    if (!Matches(record.stack)) continue;
    if (record.suppressed) {
      ++hidden.suppressed;
    } else if (IsHiddenByChange(record)) {
      ++hidden.by_change;
    } else if (!kinds.Has(record.kind)) {
      ++hidden.by_kind;
    } else if (record.of_runtime && !leak_kinds_.has_value()) {
      ++hidden.of_runtime;
    }
  }
  return hidden;
}

absl::Status ReportView::MatchFrames() {
  Regex match("--match"), function("--function"), file("--file"), module("--module");
  const std::pair<Regex*, const std::string*> regexes[] = {{&match, &filter_.match},
                                                            {&function, &filter_.function},
                                                            {&file, &filter_.file},
                                                            {&module, &filter_.module}};
  for (const auto& [regex, text] : regexes) {
    const absl::Status status = regex->Compile(*text);
    if (!status.ok()) return status;
  }
  if (filter_.all()) return absl::OkStatus();
  const size_t n = symbols_->frame_count();
  frame_matches_.assign(n, filter_.match.empty());
  frame_fits_.resize(n);
  for (uint32_t i = 1; i < n; ++i) {
    const Frame& frame = symbols_->frame({i});
    frame_matches_[i] = frame_matches_[i] || match.Finds(frame.function) ||
                        match.Finds(frame.file) || match.Finds(frame.module);
    const auto fits = [](const Regex& regex, const std::string& text) {
      return !regex.given() || regex.Finds(text);
    };
    frame_fits_[i] = fits(function, frame.function) && fits(file, frame.file) &&
                     fits(module, frame.module);
  }
  return absl::OkStatus();
}

std::string ReportView::NamelessModule(StackId stack) const {
  const std::set<std::string>& replaced = symbols().replaced();
  if (replaced.empty()) return "";
  for (const Frame* frame : Frames(stack)) {
    if (frame->function.empty() && replaced.contains(frame->module)) return frame->module;
  }
  return "";
}

bool ReportView::Matches(StackId stack) const {
  if (filter_.all()) return true;
  bool matches = false, fits = false;
  for (const FrameId id : symbols_->Stack(stack)) {
    matches = matches || frame_matches_[id.value];
    fits = fits || frame_fits_[id.value];
  }
  return matches && fits;
}

void ReportView::Take(const Grouping& grouping) {
  unfreed_.resize(grouping.leaks);
  callers_.resize(grouping.callers);
  sites_.reserve(grouping.rows.size());
  for (const Grouping::Row& row : grouping.rows) {
    const Site& site = analysis_->sites[row.site];
    sites_.push_back(&site);
    if (row.leak != 0) {
      unfreed_[row.leak - 1].Add(site);
      unfreed_bytes_ += site.live_bytes;
      unfreed_blocks_ += site.live_blocks;
    }
    callers_[row.caller].Add(site);
  }
  // Each site of a sample is rounded, and so is their sum: of all of them there is one figure.
  if (sampled() && !filtered()) {
    unfreed_bytes_ = analysis_->totals.live_bytes;
    unfreed_blocks_ = analysis_->totals.live_blocks;
  }

  for (const MappingSite& mapping : analysis_->mappings) {
    if (Matches(mapping.stack)) mappings_.push_back(&mapping);
  }
  std::sort(mappings_.begin(), mappings_.end(), [](const MappingSite* a, const MappingSite* b) {
    return std::tuple(b->bytes, b->calls, a->kind, a->stack, a->file) <
           std::tuple(a->bytes, a->calls, b->kind, b->stack, b->file);
  });
}

std::vector<const Frame*> ReportView::Frames(StackId stack) const {
  std::vector<const Frame*> frames;
  symbols_->ForEachFrame(stack, [&](const Frame& frame) { frames.push_back(&frame); });
  return frames;
}

const Frame* ReportView::Caller(StackId stack) const {
  const std::vector<const Frame*> frames = Frames(stack);
  return frames.empty() ? nullptr : frames[names::CutStack(frames).caller];
}

std::string ReportView::CallerText(StackId stack) const {
  const Frame* frame = Caller(stack);
  if (frame == nullptr) return "[no stack]";
  const std::string place = PlaceText(*frame);
  return place.empty() ? FrameName(*frame) : absl::StrCat(FrameName(*frame), " ", place);
}

std::string ReportView::Fingerprint(StackId stack, AllocFunction function) const {
  return report::Fingerprint(Frames(stack), function);
}

std::string ReportView::StrictFingerprint(StackId stack, AllocFunction function) const {
  return report::StrictFingerprint(Frames(stack), function);
}

void SortGroups(const ReportView& view, SortColumn column, std::vector<SiteGroup>* groups) {
  std::vector<std::string> names;
  if (column == SortColumn::kCaller) {
    for (const SiteGroup& group : *groups) names.push_back(view.CallerText(group.stack));
  }
  std::vector<GroupKey> keys;
  keys.reserve(groups->size());
  for (const SiteGroup& group : *groups) {
    keys.push_back({SortKey(group, column), group.bytes_allocated, group.allocations, group.stack,
                    group.function, static_cast<uint32_t>(keys.size())});
  }
  std::sort(keys.begin(), keys.end(), [&](const GroupKey& a, const GroupKey& b) {
    const int order = names.empty() ? 0 : names[a.number].compare(names[b.number]);
    return order != 0 ? order < 0 : ComesFirst(a, b);
  });
  std::vector<SiteGroup> sorted;
  sorted.reserve(groups->size());
  for (const GroupKey& key : keys) sorted.push_back(std::move((*groups)[key.number]));
  *groups = std::move(sorted);
}

std::vector<const Site*> SortedSites(const ReportView& view, SortColumn column) {
  if (column == SortColumn::kTotal) return view.sites();
  std::vector<SiteGroup> rows;  // groups of one
  for (const Site* site : view.sites()) {
    rows.emplace_back();
    rows.back().Add(*site);
  }
  SortGroups(view, column, &rows);
  std::vector<const Site*> sorted;
  for (const SiteGroup& row : rows) sorted.push_back(row.sites.front());
  return sorted;
}

}  // namespace memtrace::report::render
