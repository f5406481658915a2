#include "report/run/resumed_source.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "format/checksum.h"
#include "format/trace_format.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kHeaderBytes = sizeof(format::BlockHeader);

uint64_t EventsKey(uint32_t thread, uint32_t sequence) {
  return uint64_t{thread} << 32 | sequence;
}

// A block of records is known by its content and the clocks of its header.
uint64_t RecordsKey(const format::BlockHeader& header, const std::vector<uint8_t>& content) {
  const uint64_t parts[3] = {format::Checksum(content.data(), content.size()), header.clock_ticks,
                             header.monotonic_ns};
  return format::Checksum(parts, sizeof(parts));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> ResumedSource::Open(const std::string& packed_path,
                                                                std::unique_ptr<ByteSource> raw) {
  auto packed = FileSource::Open(packed_path);
  if (!packed.ok()) return packed.status();
  auto source = std::unique_ptr<ResumedSource>(new ResumedSource);
  source->packed_ = *std::move(packed);
  source->raw_ = std::move(raw);
  const absl::Status status = source->FindTaken();
  if (!status.ok()) return status;
  return std::unique_ptr<ByteSource>(std::move(source));
}

absl::Status ResumedSource::FindTaken() {
  absl::flat_hash_set<uint64_t> events, records;
  BlockPayload payload;
  std::vector<uint8_t> content;
  BlockScanner packed(packed_.get());
  packed_end_ = AlignToBlock(sizeof(format::FileHeader));
  if (packed_->Size() < sizeof(format::FileHeader)) packed_end_ = 0;  // died at once
  ScannedBlock block;
  while (packed_end_ != 0) {
    const auto state = packed.At(packed_end_, &block);
    if (!state.ok()) return state.status();
    // Blocks were appended one after the other: the first that is not whole is the last.
    if (*state != BlockState::kBlock || !payload.Read(*packed_, block, &content).ok()) break;
    const format::BlockHeader& header = block.header;
    if (header.kind == format::BlockKind::kEvents) {
      const uint32_t merged = std::min(format::MergedBefore(header.flags), header.sequence);
      for (uint32_t i = 0; i <= merged; ++i) {
        events.insert(EventsKey(header.thread, header.sequence - i));
      }
    } else {
      records.insert(RecordsKey(header, content));
    }
    packed_end_ = block.end();
  }
  // Without even a header the raw file stands alone, from its own header on.
  raw_begin_ = (packed_end_ + format::kRingAlignment - 1) / format::kRingAlignment *
               format::kRingAlignment;

  BlockScanner raw(raw_.get());
  for (uint64_t position = AlignToBlock(sizeof(format::FileHeader));;) {
    const auto next = raw.Find(position);
    if (!next.ok()) return next.status();
    if (!next->has_value()) return absl::OkStatus();
    const ScannedBlock& found = **next;
    position = found.end();
    if (found.header.kind == format::BlockKind::kRing) continue;
    if (found.header.kind == format::BlockKind::kEvents) {
      if (events.contains(EventsKey(found.header.thread, found.header.sequence))) {
        taken_.insert(found.offset);
      }
      continue;
    }
    if (!payload.Read(*raw_, found, &content).ok()) {
      position = found.offset + format::kBlockAlignment;
    } else if (records.contains(RecordsKey(found.header, content))) {
      taken_.insert(found.offset);
    }
  }
}

absl::StatusOr<size_t> ResumedSource::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  if (offset < raw_begin_) {
    const size_t bytes = std::min<uint64_t>(out.size(), raw_begin_ - offset);
    memset(out.data(), 0, bytes);  // the padding, and whatever the packed part lacks
    if (offset < packed_end_) {
      const size_t from_packed = std::min<uint64_t>(bytes, packed_end_ - offset);
      auto read = packed_->ReadAt(offset, out.first(from_packed));
      if (!read.ok()) return read.status();
    }
    if (bytes == out.size()) return bytes;
    auto rest = ReadAt(raw_begin_, out.subspan(bytes));
    if (!rest.ok()) return rest.status();
    return bytes + *rest;
  }
  auto read = raw_->ReadAt(offset - raw_begin_, out);
  if (!read.ok()) return read.status();
  // Hide the headers of what was taken. They are at multiples of 64; reads are anywhere.
  const uint64_t begin = offset - raw_begin_, end = begin + *read;
  if (taken_.empty()) return *read;
  for (uint64_t at = begin / kHeaderBytes * kHeaderBytes; at < end; at += kHeaderBytes) {
    if (!taken_.contains(at)) continue;
    const uint64_t from = std::max(at, begin), to = std::min(at + kHeaderBytes, end);
    memset(out.data() + (from - begin), 0, to - from);
  }
  return *read;
}

}  // namespace memtrace::report
