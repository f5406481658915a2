#include "report/faults/page_snapshots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "report/faults/by_site_number.h"
#include "report/faults/fragmentation.h"
#include "report/faults/page_owners.h"
#include "report/faults/page_runs.h"
#include "report/model/blocks_by_address.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

using format::PageState;

constexpr uint64_t kHeader = 8;  // a block's own, in front of it

using Parts = std::array<uint64_t, kRssParts>;

uint64_t Sum(const Parts& parts) {
  uint64_t sum = 0;
  for (const uint64_t part : parts) sum += part;
  return sum;
}

// Makes the parts add up to what smaps counts. The pages may tell something else, for other
// threads went on meanwhile: smaps is right, and the bytes that are known to be of blocks are
// the last to give way.
void Fit(uint64_t rss, RssPart whole, Parts* parts) {
  const uint64_t sum = Sum(*parts);
  uint64_t& rest = (*parts)[static_cast<size_t>(whole)];
  if (sum <= rss) {
    rest += rss - sum;
    return;
  }
  uint64_t over = sum - rss;
  const auto take = [&over](uint64_t* part) {
    const uint64_t taken = std::min(over, *part);
    *part -= taken;
    over -= taken;
  };
  take(&rest);
  for (size_t i = kRssParts; i > 0; --i) take(&(*parts)[i - 1]);
}

// Lays the live blocks of an instant over the pages of a snapshot.
class Layer {
 public:
  // `live`: in any order.
  Layer(const RawSnapshot& snapshot, PageOwners& owners, uint64_t page_bytes,
        std::vector<HeldBlock> live, RssBridge* bridge)
      : snapshot_(snapshot), owners_(owners), page_bytes_(page_bytes), bridge_(*bridge),
        live_(std::move(live)) {
    SortByAddress(live_);
  }

  // By address.
  void Add(const SnapshotMapping& mapping) {
    bridge_.rss += mapping.rss();
    bridge_.swap += mapping.swap();
    bridge_.huge += mapping.huge();
    while (next_run_ < snapshot_.runs.size() && snapshot_.runs[next_run_].end <= mapping.begin) {
      ++next_run_;
    }
    while (next_block_ < live_.size() && EndOf(live_[next_block_]) <= mapping.begin) ++next_block_;
    const bool has_blocks = next_block_ < live_.size() && BeginOf(live_[next_block_]) < mapping.end;
    owners_.Begin(mapping, has_blocks);
    Parts parts{};
    if (mapping.holds_data()) {
      std::vector<PageRun> pages = PagesOf(mapping);
      if (has_blocks) Blocks(mapping, pages, &parts);
      Owners(pages, &parts);
    }
    Fit(mapping.rss(), owners_.whole(), &parts);
    for (size_t i = 0; i < kRssParts; ++i) bridge_.parts[i] += parts[i];
  }

  // The resident memory of each site, with its number, in no order. The last call.
  std::vector<std::pair<uint32_t, ResidentSite>> TakeSites() {
    while (counted_ < live_.size()) SiteOf(counted_);
    return sites_.Take();
  }

 private:
  // The site of live_[i], which counts the block the first time, and those before that are in no
  // mapping.
  ResidentSite& SiteOf(size_t i) {
    while (counted_ < i) SiteOf(counted_);
    const HeldBlock& block = live_[i];
    ResidentSite& site = sites_[block.site];
    if (i == counted_) {
      ++counted_;
      site.live_bytes += block.size();
      site.untouched_bytes += block.size();  // until its pages are seen
      if (!block.has(HeldBlock::kMore)) ++site.blocks;
    }
    return site;
  }

  // With the bookkeeping in front: 8 bytes of the block's own with glibc.
  static uint64_t BeginOf(const HeldBlock& block) {
    return block.address() - std::min(kHeader, block.address());
  }
  static uint64_t EndOf(const HeldBlock& block) {
    return block.address() + std::max<uint64_t>(block.size() + block.waste(), 1);
  }

  // The resident pages of the mapping, cut to it. The page of zeros is in no Rss: where
  // smaps counts less than there are pages, by at least the pages that others have as
  // well, those are that page.
  std::vector<PageRun> PagesOf(const SnapshotMapping& mapping) {
    std::vector<PageRun> pages;
    uint64_t all = 0, shared = 0;
    for (size_t i = next_run_; i < snapshot_.runs.size() && snapshot_.runs[i].begin < mapping.end;
         ++i) {
      PageRun run = snapshot_.runs[i];
      run.begin = std::max(run.begin, mapping.begin);
      run.end = std::min(run.end, mapping.end);
      if (run.begin >= run.end) continue;
      pages.push_back(run);
      if (run.state == PageState::kSwapped) continue;
      all += run.end - run.begin;
      if (run.state == PageState::kShared) shared += run.end - run.begin;
    }
    if (shared != 0 && all >= mapping.rss() + shared) {
      std::erase_if(pages, [](const PageRun& run) { return run.state == PageState::kShared; });
    } else {
      bridge_.zero_or_shared += shared;
    }
    return pages;
  }

  // Calls visit(part, bytes) for what [begin, end) of the mapping is in. Mostly one and the same.
  template <typename Visit>
  void ForEachOwner(uint64_t begin, uint64_t end, Visit visit) {
    while (begin < end) {
      if (begin < known_from_ || begin >= known_.end) {
        known_ = owners_.At(begin);
        known_from_ = begin;
      }
      const uint64_t to = std::min(end, known_.end);
      visit(known_.part, to - begin);
      begin = to;
    }
  }

  // Adds the live blocks of the mapping, and takes them from what their memory is in.
  void Blocks(const SnapshotMapping& mapping, const std::vector<PageRun>& pages, Parts* parts) {
    std::vector<PageRun> heap;  // of `pages`, what is the allocator's
    for (const PageRun& run : pages) {
      uint64_t at = run.begin;
      if (run.state == PageState::kSwapped) continue;
      ForEachOwner(run.begin, run.end, [&](RssPart part, uint64_t bytes) {
        if (part == RssPart::kRetained) heap.push_back({at, at + bytes, run.state});
        at += bytes;
      });
    }
    const bool begins_heap = mapping.path == "[heap]" || mapping.begin % kArenaBytes == 0;
    Fragmentation fragmentation(heap, page_bytes_,
                                mapping.begin + (begins_heap ? page_bytes_ : 0));
    size_t first_run = 0;
    uint64_t before = mapping.begin;  // the end of the block before
    for (size_t i = next_block_; i < live_.size() && BeginOf(live_[i]) < mapping.end; ++i) {
      const HeldBlock& block = live_[i];
      const uint64_t address = block.address();
      const uint64_t asked_end = address + block.size();
      const uint64_t begin = std::max({BeginOf(block), before, mapping.begin});
      const uint64_t end = std::min(EndOf(block), mapping.end);
      if (begin >= end) continue;
      before = end;
      if (!block.has(HeldBlock::kMapped)) fragmentation.Add(begin, end, block.site);
      ResidentSite& site = SiteOf(i);
      while (first_run < pages.size() && pages[first_run].end <= begin) ++first_run;
      for (size_t r = first_run; r < pages.size() && pages[r].begin < end; ++r) {
        const uint64_t asked = OverlapOf(pages[r].begin, pages[r].end, std::max(address, begin),
                                         std::min(asked_end, end));
        const uint64_t there = OverlapOf(pages[r].begin, pages[r].end, begin, end);
        site.untouched_bytes -= std::min(asked, site.untouched_bytes);
        if (pages[r].state == PageState::kSwapped) {
          site.swapped_bytes += there;
          continue;
        }
        site.resident_bytes += there;
        (*parts)[static_cast<size_t>(RssPart::kLive)] += asked;
        (*parts)[static_cast<size_t>(RssPart::kWaste)] += there - asked;
        ForEachOwner(std::max(begin, pages[r].begin), std::min(end, pages[r].end),
                     [&](RssPart part, uint64_t bytes) {
                       in_blocks_[static_cast<size_t>(part)] += bytes;
                     });
      }
    }
    fragmentation.Finish();
    for (const auto& [number, pinned] : fragmentation.sites()) {
      sites_[number].pinned_bytes += pinned.bytes;
      sites_[number].pinning_blocks += pinned.blocks;
    }
    bridge_.pinned_bytes += fragmentation.pinned_bytes();
    if (fragmentation.enclosed_bytes() != 0) {
      bridge_.enclosed_bytes += fragmentation.enclosed_bytes();
      sites_[fragmentation.last_site()].enclosed_bytes += fragmentation.enclosed_bytes();
    }
  }

  // Adds the rest of the pages.
  void Owners(const std::vector<PageRun>& pages, Parts* parts) {
    for (const PageRun& run : pages) {
      if (run.state == PageState::kSwapped) continue;
      ForEachOwner(run.begin, run.end, [&](RssPart part, uint64_t bytes) {
        (*parts)[static_cast<size_t>(part)] += bytes;
      });
    }
    for (size_t i = 0; i < kRssParts; ++i) {
      (*parts)[i] -= std::min(in_blocks_[i], (*parts)[i]);
      in_blocks_[i] = 0;
    }
    known_ = {};
  }

  const RawSnapshot& snapshot_;
  PageOwners& owners_;
  const uint64_t page_bytes_;
  RssBridge& bridge_;
  std::vector<HeldBlock> live_;  // by address
  BySiteNumber<ResidentSite> sites_;
  size_t next_block_ = 0, next_run_ = 0;
  size_t counted_ = 0;                  // of live_, by the sites
  PageOwners::Stretch known_{};  // from known_from_ on, in the mapping
  uint64_t known_from_ = 0;
  Parts in_blocks_{};            // bytes of the mapping's blocks, by what their memory is in
};

}  // namespace

struct PageSnapshots::Instant {
  RawSnapshot snapshot;
  RssBridge bridge;  // its head
  uint64_t page_bytes;
  MappingModel mappings;
  std::vector<HeldBlock> live;
};

PageSnapshots::PageSnapshots(TraceReader* reader, const Range& range, bool beside)
    : reader_(reader),
      range_(range),
      beside_(beside),
      space_(reader->metadata()),
      waiting_(FindSnapshots(reader)) {
  std::reverse(waiting_.begin(), waiting_.end());
  if (!waiting_.empty()) next_ticks_ = waiting_.back().head.ticks;
}

void PageSnapshots::Take(const HeapModel& model, const MappingModel& mappings, uint64_t ticks) {
  while (!waiting_.empty() && waiting_.back().head.ticks < ticks) {
    const SnapshotPlace place = std::move(waiting_.back());
    waiting_.pop_back();
    const uint64_t time = reader_->clock().ToNs(place.head.ticks);
    if (time >= range_.from_ns && time <= range_.to_ns) TakeOne(model, mappings, place);
  }
  next_ticks_ = waiting_.empty() ? UINT64_MAX : waiting_.back().head.ticks;
}

void PageSnapshots::TakeOne(const HeapModel& model, const MappingModel& mappings,
                            const SnapshotPlace& place) {
  const uint64_t page =
      std::bit_floor(std::max<uint64_t>(reader_->metadata().process.page_bytes, 512));
  RawSnapshot snapshot = ReadSnapshot(reader_, place, page);
  if (!snapshot.done) return;
  Collect(model);  // so that there is one copy of the live blocks at a time
  RssBridge bridge;
  bridge.number = snapshot.head.number;
  bridge.reason = snapshot.head.reason;
  bridge.source = snapshot.head.source;
  bridge.name = snapshot.head.name;
  bridge.time_ns = reader_->clock().ToNs(snapshot.head.ticks);
  bridge.rollup_rss = snapshot.head.rollup_rss;
  bridge.peak_rss = snapshot.head.peak_rss;
  bridge.page_tables = snapshot.head.page_tables;
  bridge.pages_left_out = snapshot.pages_left_out;
  Instant instant = {std::move(snapshot), std::move(bridge), page, mappings, model.CopyLiveBytes()};
  if (!beside_) {
    Add(model, Lay(std::move(instant), space_));
    return;
  }
  // Deferred where no thread is to be had.
  being_laid_ = std::async(
      std::launch::async | std::launch::deferred,
      [this, moved = std::move(instant)]() mutable { return Lay(std::move(moved), space_); });
}

PageSnapshots::Laid PageSnapshots::Lay(Instant instant, const AddressSpace& space) {
  Laid laid = {std::move(instant.bridge), {}};
  PageOwners owners(instant.snapshot, space, instant.mappings);
  Layer layer(instant.snapshot, owners, instant.page_bytes, std::move(instant.live), &laid.bridge);
  for (const SnapshotMapping& mapping : instant.snapshot.mappings) layer.Add(mapping);
  laid.sites = layer.TakeSites();
  return laid;
}

void PageSnapshots::Collect(const HeapModel& model) {
  if (being_laid_.valid()) Add(model, being_laid_.get());
}

void PageSnapshots::Add(const HeapModel& model, Laid laid) {
  RssBridge& bridge = laid.bridge;
  for (auto& [number, site] : laid.sites) {
    site.stack = model.SiteStack(number);
    site.function = model.SiteFunction(number);
    bridge.live_bytes += site.live_bytes;
    bridge.untouched_bytes += site.untouched_bytes;
    bridge.sites.push_back(site);
  }
  std::sort(bridge.sites.begin(), bridge.sites.end(),
            [](const ResidentSite& a, const ResidentSite& b) {
              return std::tuple(b.resident_bytes, a.stack, a.function) <
                     std::tuple(a.resident_bytes, b.stack, b.function);
            });
  found_.bridges.push_back(std::move(bridge));
}

void PageSnapshots::Finish(const HeapModel& model, ResidentMemory* resident) {
  Collect(model);
  *resident = std::move(found_);
}

}  // namespace memtrace::report
