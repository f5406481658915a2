#include "report/run/resumed_source.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "format/checksum.h"
#include "report/trace/file_header.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kHeaderBytes = sizeof(format::BlockHeader);

// Blocks that have numbers of their own, and so are known by their headers.
bool IsNumbered(format::BlockKind kind) {
  return kind == format::BlockKind::kMemoryScan || kind == format::BlockKind::kFaults;
}

// A block of records is known by its content and the clocks of its header.
uint64_t RecordsKey(const format::BlockHeader& header, const std::vector<uint8_t>& content) {
  const uint64_t what = IsNumbered(header.kind)
                            ? KeyOf(header.thread, header.sequence)
                            : format::Checksum(content.data(), content.size());
  const uint64_t parts[] = {static_cast<uint64_t>(header.kind), what, header.content_bytes,
                            header.clock_ticks, header.monotonic_ns};
  return format::Checksum(parts, sizeof(parts));
}

uint32_t FirstSequence(const format::BlockHeader& header) {
  return header.sequence - std::min(format::MergedBefore(header.flags), header.sequence);
}

// Its thread writes more of it, under the same number.
bool IsEarly(const format::BlockHeader& header) {
  return (header.flags & format::kBlockEarly) != 0;
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

absl::StatusOr<std::unique_ptr<ResumedSource>> ResumedSource::OfLiveRun(
    std::unique_ptr<ByteSource> packed, std::unique_ptr<ByteSource> raw, uint64_t packed_before) {
  auto source = std::unique_ptr<ResumedSource>(new ResumedSource);
  source->packed_ = std::move(packed);
  source->raw_ = std::move(raw);
  source->is_live_ = true;
  source->packed_before_ = packed_before;
  const absl::Status status = source->FindTaken();
  if (!status.ok()) return status;
  return source;
}

absl::Status ResumedSource::FindTaken() {
  absl::Status status = FindPacked();
  if (status.ok()) status = FindRaw();
  if (status.ok() && is_live_) LookForMissing();
  packed_events_ = {};
  packed_records_ = {};
  events_ = {};
  return status;
}

absl::Status ResumedSource::FindPacked() {
  packed_end_ = AlignToBlock(sizeof(format::FileHeader));
  if (packed_->Size() < sizeof(format::FileHeader)) packed_end_ = 0;  // died at once
  if (is_live_ && packed_end_ != 0) {
    const auto header = ReadFileHeader(*packed_);
    if (header.ok()) {
      header_ = *header;
      header_->flags &= ~uint32_t{format::kFilePacked | format::kFileSealed};
      header_->header_checksum = format::HeaderChecksum(*header_);
    } else {
      packed_end_ = 0;
    }
  }
  BlockScanner packed(packed_.get());
  ScannedBlock block;
  while (packed_end_ != 0) {
    const auto state = packed.At(packed_end_, &block);
    if (!state.ok()) return state.status();
    // Blocks were appended one after the other: the first that is not whole is the last.
    if (*state != BlockState::kBlock) break;
    const auto is_whole = IsWholePacked(block);
    if (!is_whole.ok()) return is_whole.status();
    if (!*is_whole) break;
    const format::BlockHeader& header = block.header;
    if (header.kind != format::BlockKind::kEvents) {
      packed_records_.insert(RecordsKey(header, content_));
    } else if (!IsEarly(header)) {
      events_.push_back(
          {header.thread, FirstSequence(header), header.sequence, block.end() > packed_before_});
      for (uint64_t i = FirstSequence(header); i <= header.sequence; ++i) {
        packed_events_.insert(KeyOf(header.thread, static_cast<uint32_t>(i)));
      }
    }
    packed_end_ = block.end();
  }
  // Without even a header the raw file stands alone, from its own header on.
  raw_begin_ = (packed_end_ + format::kRingAlignment - 1) / format::kRingAlignment *
               format::kRingAlignment;
  return absl::OkStatus();
}

// Of a live run the content of a block of events is known to be whole when there is a block behind
// it: else it may be on its way. Leaves the content of other records in `content_`.
absl::StatusOr<bool> ResumedSource::IsWholePacked(const ScannedBlock& block) {
  if (!NeedsContent(block.header)) {
    ScannedBlock next;
    const auto behind = BlockScanner(packed_.get()).At(block.end(), &next);
    if (!behind.ok()) return behind.status();
    if (*behind == BlockState::kBlock) return true;
  }
  return payload_.Read(*packed_, block, &content_).ok();
}

bool ResumedSource::NeedsContent(const format::BlockHeader& header) const {
  return !is_live_ || (header.kind != format::BlockKind::kEvents && !IsNumbered(header.kind));
}

absl::Status ResumedSource::FindRaw() {
  BlockScanner raw(raw_.get());
  uint64_t end = 0;  // of the last block that is not taken
  for (uint64_t position = AlignToBlock(sizeof(format::FileHeader));;) {
    ScannedBlock found;
    const auto state = raw.At(position, &found);  // mostly one begins where the one before ends
    if (!state.ok()) return state.status();
    if (*state != BlockState::kBlock) {
      const auto next = raw.Find(position);
      if (!next.ok()) return next.status();
      if (!next->has_value()) break;
      found = **next;
    }
    const format::BlockHeader& header = found.header;
    bool is_taken = false;
    if (header.kind == format::BlockKind::kEvents) {
      is_taken = packed_events_.contains(KeyOf(header.thread, header.sequence));
      if (!IsEarly(header) && found.payload_end() <= raw_->Size())
        events_.push_back({header.thread, FirstSequence(header), header.sequence});
    } else if (header.kind != format::BlockKind::kRing) {
      if (NeedsContent(header) && !payload_.Read(*raw_, found, &content_).ok()) {
        position = found.offset + format::kBlockAlignment;
        if (header.kind == format::BlockKind::kStatus) end = found.end();
        continue;
      }
      is_taken = packed_records_.contains(RecordsKey(header, content_));
    }
    if (is_taken) {
      taken_.insert(found.offset);
    } else {
      end = found.end();
    }
    position = found.end();
  }
  if (!is_live_ || packed_end_ == 0) return absl::OkStatus();
  taken_.insert(0);  // the header of the file, in the midst of this one
  // The raw trace itself grows: its rings have events that come behind blocks which are not there
  // yet.
  const bool is_copy = packed_before_ != UINT64_MAX;
  if (is_copy) size_ = end == 0 ? packed_end_ : raw_begin_ + std::min(end, raw_->Size());
  return absl::OkStatus();
}

void ResumedSource::LookForMissing() {
  std::sort(events_.begin(), events_.end(), [](const Events& a, const Events& b) {
    return std::tie(a.thread, a.first) < std::tie(b.thread, b.first);
  });
  uint32_t thread = 0;
  uint64_t next = 1;
  for (const Events& block : events_) {
    if (block.thread != thread) next = 1;
    thread = block.thread;
    misses_blocks_ |= block.is_late && block.first > next;
    next = std::max(next, uint64_t{block.last} + 1);
  }
}

absl::StatusOr<size_t> ResumedSource::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  if (size_.has_value() && offset >= *size_) return 0;
  if (size_.has_value()) out = out.first(std::min<uint64_t>(out.size(), *size_ - offset));
  auto read = ReadParts(offset, out);
  if (read.ok() && header_.has_value() && offset < sizeof(*header_)) {
    const size_t bytes = std::min<uint64_t>(*read, sizeof(*header_) - offset);
    memcpy(out.data(), reinterpret_cast<const uint8_t*>(&*header_) + offset, bytes);
  }
  return read;
}

absl::StatusOr<size_t> ResumedSource::ReadParts(uint64_t offset, std::span<uint8_t> out) const {
  if (offset < raw_begin_) {
    const size_t bytes = std::min<uint64_t>(out.size(), raw_begin_ - offset);
    memset(out.data(), 0, bytes);  // the padding, and whatever the packed part lacks
    if (offset < packed_end_) {
      const size_t from_packed = std::min<uint64_t>(bytes, packed_end_ - offset);
      auto read = packed_->ReadAt(offset, out.first(from_packed));
      if (!read.ok()) return read.status();
    }
    if (bytes == out.size()) return bytes;
    auto rest = ReadParts(raw_begin_, out.subspan(bytes));
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
