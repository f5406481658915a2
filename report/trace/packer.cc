#include "report/trace/packer.h"

#include <algorithm>
#include <cstring>

#include "format/checksum.h"
#include "format/event_words.h"
#include "format/record_encoder.h"
#include "format/records.h"
#include "format/varint.h"
#include "report/trace/file_header.h"

namespace memtrace::report {
namespace {

constexpr size_t kClockPairsPerRecord = 4096;
constexpr uint32_t kMaxMerged = 0xffff;

void AppendVarint(std::vector<uint8_t>* out, uint64_t value) {
  uint8_t buffer[format::kMaxVarintBytes];
  out->insert(out->end(), buffer, format::PutVarint(buffer, value));
}

}  // namespace

Packer::Packer(const ByteSource* raw, int out_fd, std::string out_path,
               const PackerOptions& options)
    : raw_(raw), options_(options), scanner_(raw),
      writer_(out_fd, std::move(out_path), options.level) {}

absl::Status Packer::Start() {
  if (raw_->Size() < sizeof(format::FileHeader)) {
    return absl::FailedPreconditionError("the trace has no header yet");
  }
  auto header = ReadFileHeader(*raw_);
  if (!header.ok()) return header.status();
  position_ = AlignToBlock(header->header_bytes);
  header_ = *header;
  header->header_bytes = sizeof(*header);
  header->flags |= format::kFilePacked;
  header->flags = options_.seal ? header->flags | format::kFileSealed
                                : header->flags & ~uint32_t{format::kFileSealed};
  started_ = true;
  return writer_.WriteFileHeader(*header);
}

absl::Status Packer::Advance() {
  // Gaps first: a thread's earlier block should come before its later ones.
  std::vector<Gap> left;
  for (const Gap& gap : gaps_) {
    uint64_t position = gap.begin;
    absl::Status status = Walk(&position, gap.end, false, &left);
    if (!status.ok()) return status;
    if (position < gap.end) left.push_back({position, gap.end});
  }
  gaps_ = std::move(left);
  absl::Status status = Walk(&position_, UINT64_MAX, false, &gaps_);
  // Threads come and go: of those that have nothing to be written nothing is kept.
  for (auto at = pending_.begin(); status.ok() && at != pending_.end();) {
    Pending& pending = at->second;
    if (pending.any && position_ - pending.raw_offset > options_.lag_bytes) status = Flush(pending);
    if (pending.any) {
      ++at;
    } else {
      pending_.erase(at++);
    }
  }
  return status;
}

uint64_t Packer::written_position() const {
  uint64_t written = position();
  for (const auto& [thread, pending] : pending_) {
    if (pending.any) written = std::min(written, pending.raw_offset);
  }
  return written;
}

absl::Status Packer::WriteRecords(std::span<const uint8_t> records) {
  format::BlockHeader header{};
  header.kind = format::BlockKind::kMetadata;
  header.clock_ticks = last_ticks_;
  header.monotonic_ns = last_monotonic_ns_;
  return writer_.Write(header, records);
}

absl::Status Packer::Seal() {
  uint8_t buffer[16];
  format::RecordEncoder out(buffer, sizeof(buffer));
  out.Begin(format::RecordTag::kSeal);
  out.Number(writer_.blocks_written());
  out.End();
  return WriteRecords({out.data(), out.size()});
}

// Takes the blocks from `*position` on and leaves there where it had to stop:
// nothing complete follows. Space it had to skip is added to `gaps`.
absl::Status Packer::Walk(uint64_t* position, uint64_t end, bool final, std::vector<Gap>* gaps) {
  while (*position < end) {
    ScannedBlock block;
    auto state = scanner_.At(*position, &block);
    if (!state.ok()) return state.status();
    if (*state == BlockState::kEnd) break;
    if (*state == BlockState::kBlock) {
      auto taken = Take(block, final);
      if (!taken.ok()) return taken.status();
      if (*taken) {
        *position = segments_.NextAfter(block);
        continue;
      }
    }
    if (final && *state == BlockState::kIncomplete &&
        block.header.kind == format::BlockKind::kRing) {
      // The file was cut within it: as far as it goes.
      rings_.push_back(block);
      KeepClocks(block.header);
      break;
    }
    // Not complete here. Later blocks may be: of other threads, or behind damage.
    const bool has_header = *state == BlockState::kBlock || *state == BlockState::kIncomplete;
    uint64_t from = *position + format::kBlockAlignment;
    if (has_header && !final) from = block.end();
    auto next = scanner_.Find(from, end);
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    gaps->push_back({*position, (*next)->offset});
    *position = (*next)->offset;
  }
  return absl::OkStatus();
}

// Keeps the clock pair of a header that is not written: the reader's clock is made of all
// of them (clock_map.h).
template <typename Header>
void Packer::KeepClocks(const Header& header) {
  if (header.clock_ticks == 0 || header.monotonic_ns == 0) return;
  clock_pairs_.emplace_back(header.clock_ticks, header.monotonic_ns);
}

absl::StatusOr<bool> Packer::Take(const ScannedBlock& block, bool final) {
  const format::BlockHeader& header = block.header;
  clock_bounds_.Add(header.clock_ticks, header.monotonic_ns);
  if (header.kind == format::BlockKind::kRing || header.kind == format::BlockKind::kStatus ||
      segments_.IsVoid(block)) {
    if (header.kind == format::BlockKind::kRing) rings_.push_back(block);
    if (header.kind == format::BlockKind::kStatus) status_block_ = block;
    KeepClocks(header);
    return true;
  }
  segments_.Note(block);
  absl::Status status = payload_.Read(*raw_, block, &content_);
  if (status.code() == absl::StatusCode::kDataLoss) {
    // While the process runs the payload may be on its way behind its header.
    if (final) {
      ++damaged_blocks_;
      KeepClocks(header);
    }
    return false;
  }
  if (!status.ok()) return status;
  ++blocks_;
  last_ticks_ = header.clock_ticks;
  last_monotonic_ns_ = header.monotonic_ns;
  if (options_.observer) options_.observer(header, content_);
  if (header.kind == format::BlockKind::kEvents) {
    status = TakeEvents(block, content_);
  } else {
    status = writer_.Write(header, content_);  // also kinds this version does not know
  }
  if (!status.ok()) return status;
  return true;
}

bool Packer::Seen(uint32_t thread, uint32_t sequence) const {
  const auto it = next_sequence_.find(thread);
  return (it != next_sequence_.end() && sequence < it->second) ||
         seen_later_.contains(KeyOf(thread, sequence));
}

absl::Status Packer::TakeEvents(const ScannedBlock& block, const std::vector<uint8_t>& content) {
  const format::BlockHeader& header = block.header;
  // Each block that was merged in left a kTime word.
  const uint32_t merged = std::min({format::MergedBefore(header.flags),
                                    header.sequence > 0 ? header.sequence - 1 : 0,
                                    static_cast<uint32_t>(content.size() / 8)});
  constexpr uint32_t kApart = format::kBlockRecovered | format::kBlockEarly;
  bool is_new = false;
  for (uint32_t sequence = header.sequence - merged; sequence <= header.sequence && !is_new;
       ++sequence) {
    is_new = !Seen(header.thread, sequence);
    if (sequence == UINT32_MAX) break;
  }
  if (!is_new) {
    // A private ring may have been written in part while its thread went on: then this is the whole
    // of it, and the reader takes the longer one.
    if ((header.flags & kApart) != 0 || merged != 0 ||
        written_early_.erase(KeyOf(header.thread, header.sequence)) == 0) {
      KeepClocks(header);
      return absl::OkStatus();
    }
    absl::Status status = Flush(pending_[header.thread]);
    return status.ok() ? writer_.Write(header, content) : status;
  }
  if ((header.flags & format::kBlockEarly) != 0)
    written_early_.insert(KeyOf(header.thread, header.sequence));
  for (uint32_t sequence = header.sequence - merged; sequence <= header.sequence; ++sequence) {
    seen_later_.insert(KeyOf(header.thread, sequence));
    if (sequence == UINT32_MAX) break;
  }
  uint32_t& next = next_sequence_.try_emplace(header.thread, 1).first->second;
  while (seen_later_.erase(KeyOf(header.thread, next)) != 0) ++next;

  Pending& pending = pending_[header.thread];
  const bool joins = pending.any && ((header.flags | pending.header.flags) & kApart) == 0 &&
                     uint64_t{pending.header.sequence} + 1 == header.sequence - merged &&
                     pending.content.size() + 8 + content.size() <= options_.merge_bytes &&
                     content.size() % 8 == 0 && pending.merged_before + merged + 1 <= kMaxMerged;
  if (!joins) {
    absl::Status status = Flush(pending);
    if (!status.ok()) return status;
    pending.merged_before = merged;
    pending.raw_offset = block.offset;
  } else {
    KeepClocks(pending.header);
    const uint64_t joint = format::TimeWord(pending.header.clock_ticks);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&joint);
    pending.content.insert(pending.content.end(), bytes, bytes + sizeof(joint));
    pending.merged_before += merged + 1;
    pending_bytes_ += sizeof(joint);
  }
  pending.any = true;
  pending.header = header;
  pending.dropped_events += header.dropped_events;
  pending.content.insert(pending.content.end(), content.begin(), content.end());
  pending_bytes_ += content.size();
  if (pending.content.size() + 8 >= options_.merge_bytes) return Flush(pending);
  return pending_bytes_ > options_.buffer_bytes ? FlushAll() : absl::OkStatus();
}

absl::Status Packer::Flush(Pending& pending) {
  if (!pending.any) return absl::OkStatus();
  format::BlockHeader header = pending.header;
  header.dropped_events = pending.dropped_events;
  header.flags = (header.flags & 0xffff) | format::MergedFlags(pending.merged_before);
  absl::Status status = writer_.Write(header, pending.content);
  if (!status.ok()) return status;
  pending_bytes_ -= pending.content.size();
  pending = {};
  if (clock_pairs_.size() >= kClockPairsPerRecord) return WriteClockPairs();
  return absl::OkStatus();
}

absl::Status Packer::FlushAll() {
  for (auto& [thread, pending] : pending_) {
    absl::Status status = Flush(pending);
    if (!status.ok()) return status;
  }
  pending_.clear();  // thousands of threads may have come and gone
  return absl::OkStatus();
}

absl::Status Packer::WriteClockPairs() {
  if (clock_pairs_.empty()) return absl::OkStatus();
  std::vector<uint8_t> body, record;
  std::pair<uint64_t, uint64_t> last;
  format::BlockHeader header{};
  for (const auto& pair : clock_pairs_) {
    AppendVarint(&body, format::ZigZag(pair.first - last.first));
    AppendVarint(&body, format::ZigZag(pair.second - last.second));
    last = pair;
  }
  AppendVarint(&record, static_cast<uint64_t>(format::RecordTag::kClockPairs));
  AppendVarint(&record, body.size());
  record.insert(record.end(), body.begin(), body.end());
  header.kind = format::BlockKind::kMetadata;
  header.clock_ticks = last.first;
  header.monotonic_ns = last.second;
  clock_pairs_.clear();
  return writer_.Write(header, record);
}

absl::Status Packer::TakeRings() {
  for (const ScannedBlock& ring : rings_) {
    RingRemains remains;
    absl::Status status = ReadRing(*raw_, ring, true, &remains);
    if (!status.ok()) return status;
    format::RingHeader& from = remains.header;
    if (from.thread == 0) continue;
    // Where they are written a checksum guards them.
    if (!clock_bounds_.Allows(from.clock_ticks, from.monotonic_ns, 0)) from.monotonic_ns = 0;
    if (remains.events.empty() || Seen(from.thread, from.sequence)) {
      KeepClocks(from);
      continue;
    }
    ScannedBlock block;
    block.offset = ring.offset;
    format::BlockHeader& header = block.header;
    header = {};
    header.kind = format::BlockKind::kEvents;
    header.thread = from.thread;
    header.sequence = from.sequence;
    header.clock_ticks = from.clock_ticks;
    header.monotonic_ns = from.monotonic_ns;
    header.dropped_events = from.dropped_events;
    header.flags = format::kBlockRecovered;
    if (options_.observer) options_.observer(header, remains.events);
    status = TakeEvents(block, remains.events);
    if (!status.ok()) return status;
  }
  rings_.clear();
  return absl::OkStatus();
}

namespace {

bool TellsOfLosses(const format::StatusArea& status) {
  return status.lost_events != 0 || status.missed_events != 0 || status.lost_scans.last != 0 ||
         status.lost_end.why != 0 || status.untraced_children.count != 0;
}

}  // namespace

// Makes records of what the raw file has in its status area.
absl::Status Packer::TakeStatus() {
  if (status_block_.has_value()) status_ = ReadStatusArea(*raw_, *status_block_);
  uint8_t buffer[256];
  format::RecordEncoder out(buffer, sizeof(buffer));
  if (status_.has_value() && TellsOfLosses(*status_)) {
    out.Begin(format::RecordTag::kLosses);
    out.Number(status_->lost_events);
    out.Number(status_->first_loss_ticks);
    out.Number(status_->last_loss_ticks);
    out.Number(status_->loss_why);
    out.Number(static_cast<uint64_t>(status_->loss_errno));
    out.Number(status_->missed_events);
    out.Number(status_->lost_scans.first);
    out.Number(status_->lost_scans.last);
    out.Number(status_->lost_scans.why);
    out.Number(static_cast<uint64_t>(status_->lost_scans.error));
    out.Number(status_->lost_end.why);
    out.Number(static_cast<uint64_t>(status_->lost_end.error));
    out.Number(status_->untraced_children.count);
    out.Number(static_cast<uint64_t>(status_->untraced_children.error));
    out.End();
  }
  if (status_.has_value() && status_->stop_why != 0) {
    out.Begin(format::RecordTag::kRecordingStopped);
    out.Number(status_->stop_why);
    out.Number(status_->stop_ticks);
    out.Number(static_cast<uint64_t>(status_->stop_errno));
    out.End();
  }
  if (const uint64_t window = segments_.WindowTicks(); window != 0) {
    out.Begin(format::RecordTag::kWindow);
    out.Number(window);
    out.End();
  }
  return out.size() == 0 ? absl::OkStatus() : WriteRecords({out.data(), out.size()});
}

absl::Status Packer::Finish() {
  // Not earlier: they change as long as the process lives.
  absl::Status status = segments_.Read(*raw_, header_);
  if (status.ok()) status = Advance();
  if (!status.ok()) return status;
  // A block that is still not complete never will be: look for blocks inside the gaps too.
  std::vector<Gap> gaps = std::move(gaps_);
  gaps_.clear();
  gaps.push_back({position_, UINT64_MAX});
  for (const Gap& gap : gaps) {
    std::vector<Gap> skipped;
    uint64_t position = gap.begin;
    status = Walk(&position, gap.end, true, &skipped);
    if (!status.ok()) return status;
  }
  status = TakeRings();
  if (status.ok()) status = FlushAll();
  if (status.ok()) status = WriteClockPairs();
  if (status.ok()) status = TakeStatus();
  return status;
}

}  // namespace memtrace::report
