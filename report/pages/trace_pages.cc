#include "report/pages/trace_pages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/base/path.h"
#include "report/faults/snapshot_reader.h"
#include "report/pages/collect.h"
#include "report/pages/regions.h"
#include "report/trace/trace_reader.h"
#include "report/words/units.h"

namespace memtrace::report::pages {
namespace {

using format::PageState;

// The order of the figures in FaultTag::kMapping.
enum Kib : size_t {
  kRss,
  kPss,
  kSharedClean,
  kSharedDirty,
  kPrivateClean,
  kPrivateDirty,
  kAnonymous,
  kAnonHuge,
  kSwap,
  kSwapPss,
  kLocked,
  kShmemHuge,
  kFileHuge,
};

constexpr uint64_t kMostPagesOfMapping = uint64_t{16} << 20;  // as many as the library asks for

Mapping MappingOf(const SnapshotMapping& from) {
  const auto bytes = [&from](Kib which) { return from.kib[which] << 10; };
  Mapping m;
  m.start = from.begin;
  m.end = from.end;
  m.SetPermissions(from.permissions);
  m.offset = from.offset;
  m.inode = from.inode;
  absl::string_view name = from.path;
  m.deleted = from.inode != 0 && absl::ConsumeSuffix(&name, " (deleted)");
  m.name = std::string(name);
  m.measured = true;
  m.rss = bytes(kRss);
  m.pss = bytes(kPss);
  m.shared_clean = bytes(kSharedClean);
  m.shared_dirty = bytes(kSharedDirty);
  m.private_clean = bytes(kPrivateClean);
  m.private_dirty = bytes(kPrivateDirty);
  m.anonymous = bytes(kAnonymous);
  m.swap = bytes(kSwap);
  m.huge = from.huge();
  return m;
}

uint8_t BitsOf(PageState state) {
  switch (state) {
    case PageState::kPrivate: return Page::kPresent | Page::kExclusive;
    case PageState::kFile: return Page::kPresent | Page::kOfFile;
    case PageState::kSwapped: return Page::kSwapped;
    case PageState::kShared:
    case PageState::kResident: return Page::kPresent;
    case PageState::kAbsent: break;
  }
  return 0;
}

void AddPages(const RawSnapshot& snapshot, uint64_t page_bytes, MappedRegion* region) {
  const Mapping& m = region->mapping;
  auto run = std::partition_point(snapshot.runs.begin(), snapshot.runs.end(),
                                  [&m](const PageRun& each) { return each.end <= m.start; });
  // There are at most as many pages as the mapping has: a damaged trace must not add more.
  const uint64_t most = (m.end - m.start) / page_bytes;
  for (; run != snapshot.runs.end() && run->begin < m.end; ++run) {
    const uint64_t end = std::min(run->end, m.end);
    for (uint64_t at = std::max(run->begin, m.start); at < end; at += page_bytes) {
      if (region->pages.size() >= std::min(most, kMostPagesOfMapping)) return;
      Page page;
      page.address = at;
      page.bits = BitsOf(run->state);
      region->pages.push_back(page);
    }
  }
  region->pages_known = snapshot.pages_left_out == 0;
  MarkHuge(region, page_bytes);
}

std::string Moment(const SnapshotHead& head, uint64_t time_ns) {
  const std::string why = head.reason == format::SnapshotReason::kEnd ? "at its end"
                          : head.reason == format::SnapshotReason::kMark
                              ? absl::StrCat("at the mark ", head.name)
                              : "while it grew";
  return absl::StrCat("snapshot ", head.number, ", ", why, " (", words::Duration(time_ns), ")");
}

}  // namespace

absl::StatusOr<PagesSnapshot> PagesOfTrace(const std::string& file, uint32_t number) {
  auto opened = TraceReader::Open(file);
  if (!opened.ok()) return opened.status();
  TraceReader& reader = **opened;
  const std::vector<SnapshotPlace> places = FindSnapshots(&reader);
  if (places.empty()) {
    return absl::NotFoundError(absl::StrCat(
        file, " has no snapshot of the pages: record it with memtrace run --faults auto"));
  }
  const uint64_t page_bytes = std::max<uint64_t>(reader.metadata().process.page_bytes, 512);
  RawSnapshot snapshot;
  std::vector<uint32_t> there;
  for (const SnapshotPlace& place : places) {
    if (number != 0 && place.head.number != number) {
      there.push_back(place.head.number);
      continue;
    }
    RawSnapshot read = ReadSnapshot(&reader, place, page_bytes);
    if (read.done) snapshot = std::move(read);
  }
  if (!snapshot.done) {
    return absl::NotFoundError(
        there.empty() ? absl::StrCat(file, " has no complete snapshot of the pages")
                      : absl::StrCat(file, " has no complete snapshot ", number, "; it has ",
                                     absl::StrJoin(there, ", ")));
  }
  const ProcessInfo& of = reader.metadata().process;
  PagesSnapshot found;
  found.page_bytes = page_bytes;
  const uint64_t time_ns = reader.clock().ToNs(snapshot.head.ticks);
  found.realtime_ns = static_cast<int64_t>(static_cast<uint64_t>(of.start_realtime_ns) + time_ns);
  found.not_counted_because = "a trace does not say who else has a page";
  ProcessPages process;
  process.pid = reader.header().pid;
  process.executable = of.executable;
  process.name = std::string(FileNameOf(of.executable));
  process.command = absl::StrJoin(of.command, " ");
  std::vector<Mapping> mappings;
  for (const SnapshotMapping& mapping : snapshot.mappings) mappings.push_back(MappingOf(mapping));
  process.mappings = Classify(std::move(mappings), process.executable);
  process.problem = "of mappings that cannot be written only the sums are known";
  for (MappedRegion& region : process.mappings) {
    if (region.mapping.writable) AddPages(snapshot, page_bytes, &region);
  }
  found.source = absl::StrCat("of ", process.pid, ", ", Moment(snapshot.head, time_ns));
  found.processes.push_back(std::move(process));
  return found;
}

}  // namespace memtrace::report::pages
