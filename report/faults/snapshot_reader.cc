#include "report/faults/snapshot_reader.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "format/event_words.h"
#include "format/record_decoder.h"
#include "report/trace/record_text.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

using format::FaultTag;
using format::PageState;
using format::RecordBody;

constexpr uint64_t kMostKib = uint64_t{1} << 44;

// "Rss:        1234 kB" -> bytes.
uint64_t KibOf(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return std::min(kib, kMostKib) << 10;
}

SnapshotHead ReadHead(RecordBody& body) {
  SnapshotHead head;
  head.number = static_cast<uint32_t>(body.Number());
  head.reason = static_cast<format::SnapshotReason>(body.Number());
  head.ticks = body.Number() & format::kTickMask;
  head.source = static_cast<format::PageSource>(body.Number());
  body.Number();  // errno
  const std::string_view rollup = body.Bytes();
  head.rollup_rss = KibOf(rollup, "\nRss:");
  const std::string_view status = body.Bytes();
  head.peak_rss = KibOf(status, "VmHWM:");
  head.page_tables = KibOf(status, "VmPTE:");
  head.name = RecordText(body);
  return head;
}

SnapshotMapping ReadMapping(RecordBody& body) {
  SnapshotMapping mapping;
  mapping.begin = body.Number();
  mapping.end = std::max(body.Number(), mapping.begin);
  mapping.permissions = RecordText(body);
  mapping.permissions.resize(4, '-');
  mapping.offset = body.Number();
  mapping.inode = body.Number();
  mapping.path = RecordText(body);
  for (uint64_t& number : mapping.kib) number = std::min(body.Number(), kMostKib);
  return mapping;
}

void ReadPages(RecordBody& body, uint64_t page_bytes, std::vector<PageRun>* runs) {
  uint64_t address = body.Number();
  while (!body.at_end()) {
    const auto state = static_cast<PageState>(body.Number());
    const uint64_t pages = std::min(body.Number(), uint64_t{1} << 36);
    const uint64_t end = address + pages * page_bytes;
    if (end < address) return;
    if (state != PageState::kAbsent && pages != 0) runs->push_back({address, end, state});
    address = end;
  }
}

}  // namespace

std::vector<SnapshotPlace> FindSnapshots(TraceReader* reader) {
  std::vector<SnapshotPlace> places;
  std::vector<uint8_t> content;
  const auto& blocks = reader->fault_blocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!reader->ReadFaultBlock(blocks[i], &content)) continue;
    format::RecordDecoder decoder(content.data(), content.size());
    for (size_t record = 0; decoder.Next(); ++record) {
      if (static_cast<FaultTag>(decoder.tag()) != FaultTag::kSnapshot) continue;
      if (places.size() >= kMostSnapshots) return places;
      places.push_back({i, record, ReadHead(decoder.body())});
    }
  }
  return places;
}

RawSnapshot ReadSnapshot(TraceReader* reader, const SnapshotPlace& place, uint64_t page_bytes) {
  RawSnapshot snapshot;
  snapshot.head = place.head;
  std::vector<uint8_t> content;
  bool begun = false;
  const auto& blocks = reader->fault_blocks();
  for (size_t block = place.block; block < blocks.size() && !snapshot.done; ++block) {
    if (!reader->ReadFaultBlock(blocks[block], &content)) break;
    format::RecordDecoder decoder(content.data(), content.size());
    for (size_t i = 0; decoder.Next() && !snapshot.done; ++i) {
      if (!begun && i < place.record) continue;
      RecordBody& body = decoder.body();
      switch (static_cast<FaultTag>(decoder.tag())) {
        case FaultTag::kSnapshot:
          if (begun) return snapshot;  // the one before was cut short
          begun = true;
          break;
        case FaultTag::kMapping:
          snapshot.mappings.push_back(ReadMapping(body));
          break;
        case FaultTag::kPages:
          ReadPages(body, page_bytes, &snapshot.runs);
          break;
        case FaultTag::kOwnRange: {
          const uint64_t begin = body.Number();
          const uint64_t end = std::min(body.Number(), UINT64_MAX - page_bytes);
          snapshot.own.emplace_back(begin, (end + page_bytes - 1) / page_bytes * page_bytes);
          break;
        }
        case FaultTag::kSnapshotDone:
          snapshot.pages_left_out = body.Number();
          snapshot.done = true;
          break;
        default:
          break;
      }
    }
  }
  const auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };
  std::stable_sort(snapshot.mappings.begin(), snapshot.mappings.end(), by_begin);
  std::stable_sort(snapshot.runs.begin(), snapshot.runs.end(), by_begin);
  std::sort(snapshot.own.begin(), snapshot.own.end());
  return snapshot;
}

}  // namespace memtrace::report
