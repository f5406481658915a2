#include "report/faults/page_snapshots.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "format/record_decoder.h"
#include "report/faults/fragmentation.h"
#include "report/faults/page_runs.h"
#include "report/trace_reader.h"

namespace memtrace::report {
namespace {

using format::FaultTag;
using format::PageState;
using format::RecordBody;

constexpr uint64_t kTickMask = (uint64_t{1} << 60) - 1;
constexpr size_t kMostSnapshots = 256;
constexpr size_t kLongestText = 4096;
constexpr uint64_t kHeader = 16;  // glibc's, in front of a block

struct Mapping {
  uint64_t begin = 0, end = 0;
  std::string permissions, path;
  uint64_t inode = 0;
  uint64_t rss = 0, shared_clean = 0, anonymous = 0, huge = 0, swap = 0;  // bytes
};

struct Snapshot {
  RssBridge bridge;
  std::vector<Mapping> mappings;
  std::vector<PageRun> runs;          // by begin
  std::vector<std::pair<uint64_t, uint64_t>> own;
  bool done = false;
};

// "Rss:        1234 kB" -> bytes.
uint64_t KibOf(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib << 10;
}

std::string Text(RecordBody& body) {
  return std::string(body.Bytes().substr(0, kLongestText));
}

void ReadBegin(RecordBody& body, RssBridge* bridge, uint64_t* ticks) {
  bridge->number = static_cast<uint32_t>(body.Number());
  bridge->reason = static_cast<format::SnapshotReason>(body.Number());
  *ticks = body.Number() & kTickMask;
  bridge->source = static_cast<format::PageSource>(body.Number());
  body.Number();  // errno
  const std::string_view rollup = body.Bytes();
  bridge->rollup_rss = KibOf(rollup, "\nRss:");
  const std::string_view status = body.Bytes();
  bridge->peak_rss = KibOf(status, "VmHWM:");
  bridge->page_tables = KibOf(status, "VmPTE:");
  bridge->name = Text(body);
}

Mapping ReadMapping(RecordBody& body) {
  Mapping mapping;
  mapping.begin = body.Number();
  mapping.end = body.Number();
  mapping.permissions = Text(body);
  body.Number();  // offset
  mapping.inode = body.Number();
  mapping.path = Text(body);
  uint64_t kib[format::kMappingNumbers];
  for (uint64_t& number : kib) number = std::min(body.Number(), uint64_t{1} << 44);
  mapping.rss = kib[0] << 10;
  mapping.anonymous = kib[6] << 10;
  mapping.huge = (kib[7] + kib[11] + kib[12]) << 10;
  mapping.swap = kib[8] << 10;
  return mapping;
}

void ReadPages(RecordBody& body, uint64_t page_bytes, std::vector<PageRun>* runs) {
  uint64_t address = body.Number();
  while (!body.at_end()) {
    const auto state = static_cast<PageState>(body.Number());
    const uint64_t pages = std::min(body.Number(), uint64_t{1} << 36);
    const uint64_t end = address + pages * page_bytes;
    if (end < address) return;
    if (state != PageState::kAbsent) runs->push_back({address, end, state});
    address = end;
  }
}

}  // namespace

PageSnapshots::PageSnapshots(TraceReader* reader, const Range& range)
    : reader_(reader), range_(range), space_(reader->metadata()) {
  std::vector<uint8_t> content;
  const auto& blocks = reader->fault_blocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!reader->ReadFaultBlock(blocks[i], &content)) continue;
    format::RecordDecoder decoder(content.data(), content.size());
    for (size_t record = 0; decoder.Next(); ++record) {
      if (static_cast<FaultTag>(decoder.tag()) != FaultTag::kSnapshot) continue;
      if (waiting_.size() >= kMostSnapshots) break;
      RssBridge bridge;
      Waiting waiting{i, record, 0};
      ReadBegin(decoder.body(), &bridge, &waiting.ticks);
      waiting_.push_back(waiting);
    }
  }
  std::reverse(waiting_.begin(), waiting_.end());
  if (!waiting_.empty()) next_ticks_ = waiting_.back().ticks;
}

void PageSnapshots::Take(const HeapModel& model, const MappingModel& mappings, uint64_t ticks) {
  while (!waiting_.empty() && waiting_.back().ticks < ticks) {
    const Waiting waiting = waiting_.back();
    waiting_.pop_back();
    const uint64_t time = reader_->clock().ToNs(waiting.ticks);
    if (time >= range_.from_ns && time <= range_.to_ns) TakeOne(model, mappings, waiting);
  }
  next_ticks_ = waiting_.empty() ? UINT64_MAX : waiting_.back().ticks;
}

namespace {

// Reads on from the snapshot's first record to its last.
Snapshot ReadSnapshot(TraceReader* reader, size_t block, size_t record, uint64_t page_bytes) {
  Snapshot snapshot;
  std::vector<uint8_t> content;
  bool begun = false;
  const auto& blocks = reader->fault_blocks();
  for (; block < blocks.size() && !snapshot.done; ++block) {
    if (!reader->ReadFaultBlock(blocks[block], &content)) break;
    format::RecordDecoder decoder(content.data(), content.size());
    for (size_t i = 0; decoder.Next() && !snapshot.done; ++i) {
      if (!begun && i < record) continue;
      RecordBody& body = decoder.body();
      switch (static_cast<FaultTag>(decoder.tag())) {
        case FaultTag::kSnapshot: {
          if (begun) return snapshot;  // the one before was cut short
          begun = true;
          uint64_t ticks;
          ReadBegin(body, &snapshot.bridge, &ticks);
          break;
        }
        case FaultTag::kMapping:
          snapshot.mappings.push_back(ReadMapping(body));
          break;
        case FaultTag::kPages:
          ReadPages(body, page_bytes, &snapshot.runs);
          break;
        case FaultTag::kOwnRange: {
          const uint64_t begin = body.Number();
          snapshot.own.emplace_back(begin, body.Number());
          break;
        }
        case FaultTag::kSnapshotDone:
          snapshot.bridge.pages_left_out = body.Number();
          snapshot.done = true;
          break;
        default:
          break;
      }
    }
  }
  return snapshot;
}

bool IsOwn(const Snapshot& snapshot, uint64_t begin, uint64_t end) {
  for (const auto& [from, to] : snapshot.own) {
    if (begin < to && from < end) return true;
  }
  return false;
}

RssPart PartOf(const Mapping& mapping, const AddressSpace& space, const MappingModel& mappings) {
  if (mapping.path.find(".mtr") != std::string::npos ||
      mapping.path.starts_with("anon_inode:[perf_event]") || mapping.path == "[anon:memtrace]") {
    return RssPart::kTool;
  }
  const AddressSpace::Region* region = space.Find(mapping.begin);
  const MemoryKind kind = region != nullptr ? region->kind : MemoryKind::kUnknown;
  switch (kind) {
    case MemoryKind::kTool: return RssPart::kTool;
    case MemoryKind::kText: return RssPart::kCode;
    case MemoryKind::kData:
    case MemoryKind::kBss:
    case MemoryKind::kReadOnly: return RssPart::kData;
    case MemoryKind::kStack: return RssPart::kStacks;
    default: break;
  }
  if (mapping.path.starts_with("[stack")) return RssPart::kStacks;
  const bool shared = mapping.permissions.size() == 4 && mapping.permissions[3] == 's';
  if (shared && (mapping.path.starts_with("/dev/zero") || mapping.path.starts_with("/SYSV") ||
                 mapping.path.starts_with("/dev/shm/") || mapping.path.starts_with("/memfd:"))) {
    return RssPart::kShared;
  }
  if (mapping.inode != 0) return RssPart::kMappedFiles;
  const MappingSite* site = mappings.Find(mapping.begin);
  if (site != nullptr && (site->kind == MappingSite::Kind::kMmap ||
                          site->kind == MappingSite::Kind::kShm)) {
    return site->kind == MappingSite::Kind::kShm ? RssPart::kShared : RssPart::kProgramMap;
  }
  return RssPart::kOther;
}

}  // namespace

void PageSnapshots::TakeOne(const HeapModel& model, const MappingModel& mappings,
                            const Waiting& waiting) {
  const uint64_t page = std::max<uint64_t>(reader_->metadata().process.page_bytes, 512);
  Snapshot snapshot = ReadSnapshot(reader_, waiting.block, waiting.record, page);
  if (!snapshot.done) return;
  RssBridge& bridge = snapshot.bridge;
  bridge.time_ns = reader_->clock().ToNs(waiting.ticks);
  std::sort(snapshot.runs.begin(), snapshot.runs.end(),
            [](const PageRun& a, const PageRun& b) { return a.begin < b.begin; });
  std::vector<HeldBlock> live = model.CopyLive();
  std::sort(live.begin(), live.end(),
            [](const HeldBlock& a, const HeldBlock& b) { return a.address() < b.address(); });

  absl::flat_hash_map<uint32_t, ResidentSite> sites;
  size_t next_block = 0, next_run = 0;
  uint64_t before = 0;  // the end of the block before
  for (const Mapping& mapping : snapshot.mappings) {
    bridge.rss += mapping.rss;
    bridge.swap += mapping.swap;
    bridge.huge += mapping.huge;
    RssPart part = PartOf(mapping, space_, mappings);
    if (part == RssPart::kOther && IsOwn(snapshot, mapping.begin, mapping.end)) {
      // The kernel merges neighbours: what is ours of it is taken page by page below.
      part = RssPart::kTool;
    }
    while (next_run < snapshot.runs.size() && snapshot.runs[next_run].end <= mapping.begin) {
      ++next_run;
    }
    while (next_block < live.size() && live[next_block].address() < mapping.begin + kHeader) {
      ++next_block;
    }
    const bool has_blocks = next_block < live.size() && live[next_block].address() < mapping.end;
    const bool heap = mapping.path == "[heap]" || has_blocks;
    if (!heap) {
      const bool tool_in_part = part == RssPart::kTool && mapping.inode == 0 &&
                                mapping.path.empty();
      if (!tool_in_part) {
        if (part == RssPart::kOther && mapping.permissions.starts_with("rw-p") &&
            mapping.path.empty() && mapping.begin % (uint64_t{64} << 20) == 0) {
          part = RssPart::kRetained;  // an arena without blocks
        }
        bridge.parts[static_cast<size_t>(part)] += mapping.rss;
        continue;
      }
    }
    // Page by page: what of it is a block's, free, or ours. The runs say which pages are there;
    // smaps has the sum, which counts the page of zeros as none.
    uint64_t blocks_resident = 0, requested_resident = 0, own = 0;
    for (size_t r = next_run; r < snapshot.runs.size() && snapshot.runs[r].begin < mapping.end; ++r) {
      const PageRun& run = snapshot.runs[r];
      if (run.state == PageState::kSwapped) continue;
      if (run.state == PageState::kShared) bridge.zero_or_shared += run.end - run.begin;
      for (const auto& [from, to] : snapshot.own) own += OverlapOf(run.begin, run.end, from, to);
    }
    size_t r = next_run;
    Fragmentation fragmentation(snapshot.runs, page, mapping.begin);
    for (; next_block < live.size() && live[next_block].address() < mapping.end; ++next_block) {
      const HeldBlock& block = live[next_block];
      const uint64_t address = block.address();
      // The bookkeeping in front of it: 8 bytes of its own with glibc, never the block before.
      const uint64_t begin = std::max(address - 8, before);
      const uint64_t requested_end = std::min(address + block.size(), mapping.end);
      const uint64_t end = std::min(address + block.size() + block.waste(), mapping.end);
      before = end;
      if (!block.has(HeldBlock::kMapped)) fragmentation.Add(begin, end, block.site);
      ResidentSite& site = sites[block.site];
      site.live_bytes += block.size();
      ++site.blocks;
      while (r < snapshot.runs.size() && snapshot.runs[r].end <= begin) ++r;
      uint64_t there = 0, of_requested = 0;
      for (size_t i = r; i < snapshot.runs.size() && snapshot.runs[i].begin < end; ++i) {
        const PageRun& run = snapshot.runs[i];
        if (run.state == PageState::kSwapped) {
          site.swapped_bytes += OverlapOf(run.begin, run.end, begin, end);
          of_requested += OverlapOf(run.begin, run.end, address, requested_end);
          continue;
        }
        there += OverlapOf(run.begin, run.end, begin, end);
        const uint64_t asked = OverlapOf(run.begin, run.end, address, requested_end);
        of_requested += asked;
        requested_resident += asked;
      }
      site.resident_bytes += there;
      blocks_resident += there;
      site.untouched_bytes += requested_end - address - std::min(of_requested, requested_end - address);
    }
    fragmentation.Finish();
    for (const auto& [number, pinned] : fragmentation.sites()) {
      sites[number].pinned_bytes += pinned.bytes;
      sites[number].pinning_blocks += pinned.blocks;
    }
    bridge.pinned_bytes += fragmentation.pinned_bytes();
    if (fragmentation.enclosed_bytes() != 0) {
      bridge.enclosed_bytes += fragmentation.enclosed_bytes();
      sites[fragmentation.last_site()].enclosed_bytes += fragmentation.enclosed_bytes();
    }
    // Where smaps and the pages differ (other threads go on; the page of zeros), smaps counts.
    const uint64_t rss = mapping.rss;
    const uint64_t live_part = std::min(requested_resident, rss);
    const uint64_t waste_part = std::min(blocks_resident - requested_resident, rss - live_part);
    const uint64_t own_part = std::min(own, rss - live_part - waste_part);
    bridge.parts[static_cast<size_t>(RssPart::kLive)] += live_part;
    bridge.parts[static_cast<size_t>(RssPart::kWaste)] += waste_part;
    bridge.parts[static_cast<size_t>(RssPart::kTool)] += own_part;
    const uint64_t rest = rss - live_part - waste_part - own_part;
    bridge.parts[static_cast<size_t>(heap ? RssPart::kRetained : RssPart::kOther)] += rest;
  }
  for (auto& [number, site] : sites) {
    site.stack = model.SiteStack(number);
    site.function = model.SiteFunction(number);
    bridge.live_bytes += site.live_bytes;
    bridge.untouched_bytes += site.untouched_bytes;
    bridge.sites.push_back(site);
  }
  std::sort(bridge.sites.begin(), bridge.sites.end(),
            [](const ResidentSite& a, const ResidentSite& b) {
              return a.resident_bytes != b.resident_bytes ? a.resident_bytes > b.resident_bytes
                                                          : a.stack.value < b.stack.value;
            });
  found_.bridges.push_back(std::move(bridge));
}

void PageSnapshots::Finish(ResidentMemory* resident) { *resident = std::move(found_); }

}  // namespace memtrace::report
