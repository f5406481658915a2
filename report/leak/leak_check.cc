#include "report/leak/leak_check.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "format/event_words.h"
#include "report/base/path.h"
#include "report/leak/glib_blocks.h"
#include "report/leak/leader_order.h"
#include "report/leak/marker.h"
#include "report/model/heap_model.h"
#include "report/model/module_finder.h"
#include "report/trace/trace_reader.h"
#include "report/words/units.h"
#include "report/words/write_failure.h"

namespace memtrace::report::leak {
namespace {

// Each scan costs as much as there are live blocks. A trace may have thousands of both.
constexpr uint64_t kMostBlocksLookedAt = uint64_t{1} << 31;
constexpr size_t kRegionsNamed = 5;

class Facts : public ScanVisitor {
 public:
  explicit Facts(Heuristics* heuristics) : heuristics_(heuristics) {}
  void OnTarget(const Target& target) override { heuristics_->Add(target); }
  void OnVtable(uint64_t address) override { heuristics_->AddVtable(address); }

 private:
  Heuristics* const heuristics_;
};

// Memory that nobody looked through and that may hold pointers. Of stacks only what is dead is
// left out; older versions wrote that as not scanned. Into the rings of perf events the kernel
// writes, and most often they are the library's own.
bool IsMissing(const ScanRegion& region) {
  return region.use == format::ScanRegionUse::kNotScanned &&
         region.kind != format::ScanRegionKind::kStack &&
         !absl::StartsWith(region.path, "anon_inode:[perf_event]");
}

}  // namespace

LeakCheck::LeakCheck(TraceReader* reader, const StackTable* stacks, const LeakOptions& options,
                     Range range, Observer observer, std::function<bool()> stop)
    : reader_(reader),
      stacks_(stacks),
      options_(options),
      range_(range),
      observer_(std::move(observer)),
      stop_(std::move(stop)),
      records_(stacks, options.resolution) {
  for (const uint32_t number : ScanNumbers(*reader)) {
    const Scan scan = ReadScan(*reader, number, nullptr, /*only_begin=*/true);
    waiting_.push_back({number, scan.begin.ticks & format::kTickMask});
  }
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Waiting& a, const Waiting& b) { return a.ticks > b.ticks; });
  if (!waiting_.empty()) next_ticks_ = waiting_.back().ticks;
}

void LeakCheck::Take(const HeapModel& model, uint64_t ticks) {
  while (!waiting_.empty() && waiting_.back().ticks < ticks) {
    const uint32_t number = waiting_.back().number;
    waiting_.pop_back();
    TakeOne(model, number, /*after_last_event=*/ticks == UINT64_MAX);
  }
  next_ticks_ = waiting_.empty() ? UINT64_MAX : waiting_.back().ticks;
}

void LeakCheck::TakeOne(const HeapModel& model, uint32_t number, bool after_last_event) {
  Scan scan = ReadScan(*reader_, number, nullptr, /*only_begin=*/true);
  LeakScan found;
  found.number = number;
  found.reason = scan.begin.reason;
  found.show = scan.begin.show;
  found.label = scan.begin.label;
  found.time_ns = reader_->clock().ToNs(scan.begin.ticks & format::kTickMask);
  if (found.time_ns < range_.from_ns || found.time_ns > range_.to_ns) return;
  blocks_looked_at_ += model.live_table_size();
  if (reader_->metadata().process.sample_bytes != 0) {
    found.state = LeakScan::State::kFailed;
    found.failure =
        "only a sample of the blocks was recorded: what the others point to is not known";
  } else if (EventsAreDamaged(after_last_event)) {
    found.state = LeakScan::State::kFailed;
    found.failure =
        "the trace is damaged, see Coverage: which blocks were live at the scan is not known";
  } else if (blocks_looked_at_ > kMostBlocksLookedAt) {
    found.state = LeakScan::State::kFailed;
    found.failure = "there are more scans of more blocks than can be looked at; --from and --to "
                    "choose others";
  } else {
    Classify(model, scan, &found);
  }
  found_.push_back(std::move(found));
}

void LeakCheck::Classify(const HeapModel& model, Scan& scan, LeakScan* found) {
  Heuristics heuristics(options_.heuristics);
  Facts facts(&heuristics);
  scan = ReadScan(*reader_, scan.number, &facts);
  if (!scan.failure.empty()) {
    found->state = LeakScan::State::kFailed;
    found->failure = scan.failure;
    return;
  }
  if (!scan.has_begin || !scan.damage.empty() || !scan.done.has_value()) {
    found->state = LeakScan::State::kCutShort;
    found->failure = WhyCutShort(scan);
    return;
  }
  heuristics.Sort();
  const bool has_glib = HasGLib();
  if (has_glib) heuristics.AddClosures();
  found->state = LeakScan::State::kDone;
  found->cost = {.stood_ns = scan.begin.stood_ns,
                 .fork_ns = scan.begin.fork_ns,
                 .cpu_ns = scan.done->cpu_ns,
                 .elapsed_ns = scan.done->elapsed_ns,
                 .root_bytes = scan.done->root_bytes,
                 .heap_bytes = scan.done->territory_bytes,
                 .in_process = scan.begin.scanner_pid == 0};
  std::vector<BlockSite> sites(model.site_count());
  for (uint32_t i = 0; i < sites.size(); ++i)
    sites[i] = {model.SiteStack(i), model.SiteFunction(i)};
  const UnseenCode unseen(scan, reader_->metadata());
  const bool usable_sizes = std::any_of(
      scan.hints.begin(), scan.hints.end(),
      [](const ScanHintRange& hint) { return hint.kind == format::ScanHint::kUsableSizes; });
  const AllocatedRanges* const allocated = AllocatedBefore(scan, unseen);
  HeapGraphBuilder builder(
      BlockIndex(model.CopyLive(), usable_sizes), heuristics, scan,
      {.all_roots = !WhyBlocksAreUnknown(unseen).empty(),
       .allocated = allocated,
       .is_glibc = reader_->metadata().process.allocator != format::AllocatorKind::kOther,
       .freed_unseen = unseen.MayHaveFreed(sites, *stacks_)});
  Scan again = ReadScan(*reader_, scan.number, &builder);
  HeapGraph graph = builder.Finish();
  if (has_glib) FindGLibBlocks(options_.heuristics, &graph);
  Marks marks = Mark(graph, OrderOfLeaders(options_.leader, graph, sites, *stacks_,
                                           [this] { return ModulesOf(*reader_); }));
  records_.Fill(graph, marks, sites, found);
  Explain(scan, unseen, allocated != nullptr, found);
  if (model.has_doubts()) {
    found->notes.emplace_back("the order of some events at that time could not be found: blocks of "
                              "these may count as live, or as freed, wrongly");
  }
  if (observer_) observer_({scan, graph, marks, sites, *found});
}

std::string LeakCheck::WhyCutShort(const Scan& scan) const {
  const LostScansRecord& lost = reader_->metadata().lost_scans;
  if (lost.last != 0 && lost.first <= scan.number && scan.number <= lost.last) {
    return absl::StrCat("what it found could not be written to the trace: ",
                        words::WhyNotWrittenAndCure(lost.why, lost.error));
  }
  if (!scan.damage.empty()) return scan.damage;
  return scan.has_begin ? "the scan was cut short: its process was killed, or the trace was read "
                          "before it ended"
                        : "its beginning is not in the trace";
}

// Whether the process has GLib as a library. A program that is linked with it statically is
// treated as all others.
bool LeakCheck::HasGLib() const {
  const auto& modules = reader_->metadata().modules;
  return std::any_of(modules.begin(), modules.end(), [](const ModuleRecord& module) {
    return absl::StartsWith(FileNameOf(module.info.path), "libglib-2.0.so");
  });
}

// Where the process had blocks up to the scan, if that tells where no unknown block is; else null.
// Only of the parent's blocks it does: they were there when the first of these was allocated. A
// trace of an older version does not tell which events came before the scan.
const AllocatedRanges* LeakCheck::AllocatedBefore(const Scan& scan, const UnseenCode& unseen) {
  if (!IsForkChild() || !WhyOwnBlocksAreUnknown(unseen).empty() ||
      reader_->metadata().process.stamp_rule != format::StampRule::kChangeOfOwner) {
    return nullptr;
  }
  if (!history_.has_value()) history_.emplace(reader_, stop_);
  return history_->UpTo(scan.begin.ticks & format::kTickMask);
}

bool LeakCheck::IsForkChild() const {
  return (reader_->header().flags & format::kFileForked) != 0;
}

// Blocks that are in the heap and not in the trace: empty if there are none.
std::string LeakCheck::WhyBlocksAreUnknown(const UnseenCode& unseen) const {
  if (IsForkChild()) return "blocks of the parent process are not known here";
  return WhyOwnBlocksAreUnknown(unseen);
}

// The same of blocks that the process has allocated itself.
std::string LeakCheck::WhyOwnBlocksAreUnknown(const UnseenCode& unseen) const {
  if (reader_->window_begin_ns() != 0) {
    return "blocks from before the recorded window are not known";
  }
  if (EventsWereLost()) return "events were lost, and with them blocks";
  if (unseen.who_allocates().empty()) return "";
  return absl::StrCat("what ", unseen.who_allocates(),
                      " allocated past the functions that are recorded is not known");
}

// By the library.
bool LeakCheck::EventsWereLost() const {
  return reader_->statistics().dropped_events + reader_->metadata().losses.lost_events +
             reader_->metadata().losses.missed_events != 0;
}

// By the file: allocations and frees from before the scan are missing. A packed file that was cut
// is whole up to the last event that it has; of a raw one, whose writer was killed or still runs,
// the rings have the rest.
bool LeakCheck::EventsAreDamaged(bool after_last_event) const {
  const bool packed = (reader_->header().flags & format::kFilePacked) != 0;
  return reader_->statistics().lost_blocks != 0 || !reader_->damage().empty() ||
         (after_last_event && packed && !reader_->cut_place().empty());
}

// Notes what was not scanned, and what else a reader must know to believe the rest.
void LeakCheck::Explain(const Scan& scan, const UnseenCode& unseen, bool knows_allocated,
                        LeakScan* found) const {
  const auto note = [&](std::string_view text) { found->notes.emplace_back(text); };
  if (!scan.begin.note.empty()) note(scan.begin.note);
  uint64_t unparked = 0;
  for (const ScanThread& thread : scan.threads) {
    unparked += thread.state == format::ScanThreadState::kUnparked;
  }
  if (unparked != 0) {
    note(absl::StrCat(
        words::Plural(unparked, "thread"), " did not stop, as ",
        unparked == 1 ? "it blocks signals or was" : "they block signals or were",
        " not in time: ", unparked == 1 ? "its whole stack was" : "their whole stacks were",
        " scanned, ", unparked == 1 ? "its" : "their", " registers were not"));
  }
  std::vector<std::string> names;
  uint64_t not_scanned = 0, named = 0, bytes = 0, failed = 0;
  for (const ScanRegion& region : scan.regions) {
    failed += region.bytes_failed;
    if (!IsMissing(region)) continue;
    ++not_scanned;
    if (region.end > region.start) bytes += region.end - region.start;
    const bool known = std::find(names.begin(), names.end(), region.path) != names.end();
    const bool is_new = !region.path.empty() && !known && names.size() < kRegionsNamed;
    if (is_new) names.push_back(region.path);
    named += known || is_new;
  }
  if (not_scanned != 0) {
    note(absl::StrCat("not scanned: ", words::Plural(not_scanned, "mapping"), ", ",
                      words::ExactBytes(bytes), names.empty() ? "" : ": ",
                      absl::StrJoin(names, ", "),
                      named < not_scanned && !names.empty() ? ", ..." : ""));
  }
  failed = std::max(failed, scan.done->failed_bytes);
  if (failed != 0) {
    note(absl::StrCat(words::ExactBytes(failed),
                      " could not be read: what they point to may count as lost"));
  }
  if (const std::string why = WhyBlocksAreUnknown(unseen); !why.empty()) {
    note(absl::StrCat(
        why, ": ",
        knows_allocated
            ? "the heap was taken for roots where this process has never had a block itself"
            : "all of the heap outside of known blocks was taken for roots",
        ", so that less counts as lost than may be"));
  }
  found->allocations_unseen = !unseen.who_allocates().empty();
  if (found->frees_unseen = !unseen.who_frees().empty(); found->frees_unseen) {
    note(absl::StrCat("what ", unseen.who_frees(),
                      " freed past the functions that are recorded counts as live: of "
                      "that, what was allocated by way of it counts as possibly lost, not "
                      "definitely; what others "
                      "allocated may count as definitely lost"));
  }
  if (EventsWereLost())
    note("a block whose free is among the lost events counts as live, and may count as lost");
  if (reader_->metadata().process.stamp_rule != format::StampRule::kChangeOfOwner) {
    note("the trace is of an older version: what was live at the instant was inferred");
  }
}

}  // namespace memtrace::report::leak
