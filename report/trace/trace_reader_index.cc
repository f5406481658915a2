// How a TraceReader opens a trace: the walk over its blocks, and what is made of it: the blocks of
// each thread in order, with the rings in their places.

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/trace/file_header.h"
#include "report/trace/file_writers.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

absl::Status TraceReader::Index() {
  auto header = ReadFileHeader(*source_);
  if (!header.ok()) return header.status();
  header_ = *header;
  statistics_.file_bytes = source_->Size();
  absl::Status segments = segments_.Read(*source_, header_);
  if (!segments.ok()) return segments;
  BlockScanner scanner(source_.get());
  uint64_t whole_to = 0;  // to there the bytes are those of whole blocks, remnants too
  std::optional<uint64_t> torn_events;  // KeyOf() the block of events that the file ends within
  for (uint64_t position = AlignToBlock(header_.header_bytes);;) {
    ScannedBlock block;
    auto state = scanner.At(position, &block);
    if (!state.ok()) return state.status();
    if (*state == BlockState::kEnd) {
      if (std::max(position, whole_to) < source_->Size()) NoteCutWithinBlock();
      break;
    }
    if (*state == BlockState::kBlock) {
      whole_to = std::max(whole_to, block.payload_end());
      absl::Status status = IndexBlock(block);
      if (!status.ok()) return status;
      position = segments_.NextAfter(block);
      continue;
    }
    if (*state == BlockState::kIncomplete) {
      // A ring is read as far as the file goes; of another block nothing is whole.
      NoteCutWithinBlock();
      if (block.header.kind == format::BlockKind::kRing) {
        absl::Status status = IndexBlock(block);
        if (!status.ok()) return status;
      } else if (block.header.kind == format::BlockKind::kEvents) {
        torn_events = KeyOf(block.header.thread, block.header.sequence);
      }
      break;
    }
    const uint64_t before = position;
    absl::Status status = SkipGap(&position);
    if (!status.ok()) return status;
    if (position == before) break;
  }
  if (absl::Status status = LookAgain(); !status.ok()) return status;
  CheckSeal();
  for (auto& [thread, blocks] : by_thread_) SortBlocks(&blocks);
  std::stable_sort(scan_blocks_.begin(), scan_blocks_.end(),
                   [](const ScanBlockRef& a, const ScanBlockRef& b) {
                     return std::tie(a.scan, a.sequence) < std::tie(b.scan, b.sequence);
                   });
  std::stable_sort(fault_blocks_.begin(), fault_blocks_.end(),
                   [](const FaultBlockRef& a, const FaultBlockRef& b) {
                     return a.sequence < b.sequence;
                   });
  UseRings();
  // _exit() and exec end the other threads, also one that copies its ring to the file: the ring
  // still has all of it.
  if (torn_events.has_value() && metadata_.end.has_value() && ring_copies_.contains(*torn_events)) {
    cut_ = false;
    cut_place_.clear();
  }
  MakeStreams();
  clock_.Build(metadata_.start_monotonic_ns, metadata_.ticks_per_second);
  const uint64_t window = std::max(segments_.WindowTicks(), metadata_.window_ticks);
  if (window != 0) window_begin_ns_ = std::max<uint64_t>(clock_.ToNs(window), 1);
  if ((header_.flags & format::kFileNewest) != 0) cut_ |= !metadata_.end.has_value();
  // A fork child of a process that was killed has a part of the file mapped as well.
  const uint64_t start_ns = metadata_.start_monotonic_ns;
  if (opened_ns_ > start_ns && start_ns != 0 && !metadata_.end.has_value() &&
      MayBeAlive(header_.pid, metadata_.process.pid_namespace)) {
    live_until_ns_ = opened_ns_ - start_ns;
    // The block that the file ends within is being written, and is later than this; or
    // its ring has it still.
    cut_ = false;
    cut_place_.clear();
  }
  return absl::OkStatus();
}

// Looks again into the gaps of the file of a process that is at work. A block that was being
// written when the reader came by is whole by now if the next one of its thread was found, for a
// thread writes one after the other. A block that is found may show in turn that an earlier one of
// its thread is missing: so this goes on as long as something is found. A block that was written
// between two looks at its place was no header at the first and no gap at the second.
absl::Status TraceReader::LookAgain() {
  const auto is_damaged = [](const Gap& gap) { return !gap.unwritten; };
  for (bool found = opened_ns_ != 0;
       found && (HasHoles() || std::ranges::any_of(gaps_, is_damaged));) {
    found = false;
    BlockScanner scanner(source_.get());
    for (const Gap gap : std::exchange(gaps_, {})) {
      for (uint64_t position = gap.begin; position < gap.end;) {
        const auto next = scanner.Find(position, gap.end);
        if (!next.ok()) return next.status();
        const uint64_t begin = next->has_value() ? (*next)->offset : gap.end;
        // Nothing is known to be wrong with the bytes behind a block that was found.
        if (begin > position)
          gaps_.push_back({position, begin, gap.unwritten || position > gap.begin});
        if (!next->has_value()) break;
        found = true;
        if (absl::Status status = IndexBlock(**next); !status.ok()) return status;
        position = (*next)->end();
      }
    }
  }
  for (const Gap& gap : gaps_) {
    if (gap.unwritten) {
      ++statistics_.gaps;
      statistics_.gap_bytes += gap.end - gap.begin;
    } else {
      NoteDamage(gap.begin, absl::StrCat("damaged at byte ", gap.begin,
                                         ": the header of a block does not match its checksum"));
    }
  }
  gaps_.clear();
  return absl::OkStatus();
}

// Blocks of events are missing that came before others of their thread.
bool TraceReader::HasHoles() const {
  // First and last sequence number.
  absl::flat_hash_map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> threads;
  for (const auto& [thread, blocks] : by_thread_) {
    for (const BlockRef& block : blocks)
      threads[thread].emplace_back(block.first_sequence(), block.sequence);
  }
  for (const KeptRing& ring : rings_) {
    const format::RingHeader& header = ring.remains.header;
    if (!ring.remains.events.empty())
      threads[header.thread].emplace_back(header.sequence, header.sequence);
  }
  for (auto& [thread, spans] : threads) {
    std::sort(spans.begin(), spans.end());
    uint32_t next = 1;
    for (const auto& [first, last] : spans) {
      if (first > next) return true;
      next = std::max(next, last + 1);
    }
  }
  return false;
}

// A file may be cut between two blocks, where nothing shows.
void TraceReader::CheckSeal() {
  if ((header_.flags & format::kFileSealed) == 0 || cut_) return;
  if (last_is_seal_ && metadata_.seal == blocks_ - 1) return;
  cut_ = true;
  cut_place_ =
      "its last block is missing: it was cut, or its writer was killed, or the trace that it "
      "was packed from was not whole; what was before was read";
}

// `*position` moves to the next block, or stays when there is none.
absl::Status TraceReader::SkipGap(uint64_t* position) {
  uint8_t bytes[sizeof(format::BlockHeader)];
  auto read = source_->ReadAt(*position, bytes);
  if (!read.ok()) return read.status();
  const bool unwritten = std::all_of(bytes, bytes + *read, [](uint8_t b) { return b == 0; });
  BlockScanner scanner(source_.get());
  auto next = scanner.Find(*position + format::kBlockAlignment);
  if (!next.ok()) return next.status();
  const uint64_t end = next->has_value() ? (*next)->offset : source_->Size();
  if (unwritten && !next->has_value() && metadata_.IsReserved(*position)) {
    // What follows is a hole; where a file ends without one nothing shows, either.
    statistics_.file_bytes = *position;
  } else if ((header_.flags & format::kFileNewest) != 0 &&
             (unwritten || segments_.Contains(*position))) {
    // A part of the file that was not used yet, or what a newer block left of an older one.
  } else {
    gaps_.push_back({*position, end, unwritten});
    cut_ |= unwritten && !next->has_value();
  }
  if (next->has_value()) *position = end;
  return absl::OkStatus();
}

absl::Status TraceReader::IndexBlock(const ScannedBlock& block) {
  const format::BlockHeader& header = block.header;
  ++blocks_;
  last_is_seal_ = false;
  clock_.Add(header.clock_ticks, header.monotonic_ns);
  if (segments_.IsVoid(block)) return absl::OkStatus();
  segments_.Note(block);
  const uint64_t bytes = block.end() - block.offset;
  switch (header.kind) {
    case format::BlockKind::kMetadata:
      ++statistics_.metadata_blocks;
      statistics_.metadata_bytes += bytes;
      return IndexMetadata(block);
    case format::BlockKind::kEvents: {
      ++statistics_.event_blocks;
      statistics_.event_bytes += bytes;
      statistics_.event_content_bytes += header.content_bytes;
      BlockRef ref;
      ref.offset = block.offset;
      ref.clock_ticks = header.clock_ticks;
      ref.sequence = header.sequence;
      ref.merged_before = std::min(format::MergedBefore(header.flags),
                                   header.sequence > 0 ? header.sequence - 1 : 0);
      ref.content_bytes = header.content_bytes;
      ref.dropped_events = header.dropped_events;
      ref.open_ended = (header.flags & format::kBlockRecovered) != 0;
      by_thread_[header.thread].push_back(ref);
      return absl::OkStatus();
    }
    case format::BlockKind::kRing: {
      ++statistics_.ring_blocks;
      // Now, and not when its events are asked for: of a process that lives the ring has
      // others by then. What is in blocks already was written before, and is found by
      // whoever reads to the end.
      KeptRing& ring = rings_.emplace_back();
      ring.offset = block.offset;
      return ReadSteadyRing(*source_, block, &ring.remains);
    }
    case format::BlockKind::kStatus:
      if (const auto area = ReadStatusArea(*source_, block)) metadata_.Take(*area);
      return absl::OkStatus();
    case format::BlockKind::kMemoryScan:
      ++statistics_.scan_blocks;
      statistics_.scan_bytes += bytes;
      scan_content_bytes_ += header.content_bytes;
      if (scan_content_bytes_ > kScanBytes + kScanRatio * source_->Size()) {
        NoteDamage(block.offset, absl::StrCat("damaged at byte ", block.offset, ": the memory ",
                                              "scans expand to more than any trace has"));
      } else {
        scan_blocks_.push_back({block.offset, header.thread, header.sequence,
                                header.content_bytes});
      }
      return absl::OkStatus();
    case format::BlockKind::kFaults:
      ++statistics_.fault_blocks;
      scan_content_bytes_ += header.content_bytes;
      if (scan_content_bytes_ > kScanBytes + kScanRatio * source_->Size()) {
        NoteDamage(block.offset, absl::StrCat("damaged at byte ", block.offset, ": the faults ",
                                              "expand to more than any trace has"));
      } else {
        fault_blocks_.push_back({block.offset, header.sequence, header.content_bytes});
      }
      return absl::OkStatus();
  }
  ++statistics_.unknown_blocks;
  return absl::OkStatus();
}

absl::Status TraceReader::IndexMetadata(const ScannedBlock& block) {
  // All records are kept. What they say compresses well, but not without end.
  metadata_content_bytes_ += block.header.content_bytes;
  if (metadata_content_bytes_ > kMetadataBytes + kMetadataRatio * source_->Size()) {
    NoteDamage(block.offset, absl::StrCat("damaged at byte ", block.offset, ": the records of ",
                                          "the trace expand to more than any trace has"));
    return absl::OkStatus();
  }
  absl::Status status =
      RetryWhileWritten([&] { return payload_.Read(*source_, block, &content_); });
  if (status.code() == absl::StatusCode::kDataLoss ||
      status.code() == absl::StatusCode::kUnimplemented) {
    NoteDamage(block.offset, status.message());
    return absl::OkStatus();
  }
  if (!status.ok()) return status;
  metadata_.seal.reset();
  const bool is_whole = metadata_.Read(content_, &clock_);
  last_is_seal_ = metadata_.seal.has_value();
  if (!is_whole) {
    NoteDamage(block.offset, absl::StrCat("damaged at byte ", block.offset,
                                          ": a record is longer than its block"));
  }
  return absl::OkStatus();
}

// Called when all blocks are known, with those of each thread sorted; sorts them again.
void TraceReader::UseRings() {
  absl::flat_hash_map<uint32_t, std::vector<BlockRef>> used;
  for (KeptRing& ring : rings_) {
    const RingRemains remains = std::move(ring.remains);  // given back ring by ring
    const format::RingHeader& from = remains.header;
    if (from.thread == 0 || from.magic != format::kRingMagic) continue;
    clock_.AddUnguarded(from.clock_ticks, from.monotonic_ns);
    ring_copies_.try_emplace(KeyOf(from.thread, from.sequence), ring.offset);
    if (remains.events.empty()) continue;
    const std::vector<BlockRef>& blocks = by_thread_[from.thread];
    const auto at = std::lower_bound(
        blocks.begin(), blocks.end(), from.sequence,
        [](const BlockRef& block, uint32_t sequence) { return block.sequence < sequence; });
    if (at != blocks.end() && at->first_sequence() <= from.sequence) continue;  // a copy
    BlockRef ref;
    ref.offset = ring.offset;
    ref.clock_ticks = from.clock_ticks;
    ref.sequence = from.sequence;
    ref.content_bytes = static_cast<uint32_t>(remains.events.size());
    ref.dropped_events = from.dropped_events;
    ref.open_ended = true;
    ref.is_ring = true;
    ring_words_[ring.offset] = remains.Words();
    used[from.thread].push_back(ref);
    ++statistics_.rings_used;
  }
  rings_.clear();
  for (const auto& [thread, refs] : used) {
    std::vector<BlockRef>& blocks = by_thread_[thread];
    blocks.insert(blocks.end(), refs.begin(), refs.end());
    SortBlocks(&blocks);
  }
}

void TraceReader::SortBlocks(std::vector<BlockRef>* blocks) {
  std::stable_sort(blocks->begin(), blocks->end(), [](const BlockRef& a, const BlockRef& b) {
    return a.sequence < b.sequence;
  });
}

void TraceReader::MakeStreams() {
  for (auto& [thread, blocks] : by_thread_) {
    ThreadStream stream;
    stream.thread = thread;
    const auto record = metadata_.threads.find(thread);
    if (record != metadata_.threads.end()) stream.first_ticks = record->second.first_ticks;
    uint64_t next = 1;
    // Of blocks with the same numbers the longest is taken: the part of a private ring that was
    // written while its thread went on is the beginning of what the thread wrote of it.
    std::stable_sort(blocks.begin(), blocks.end(), [](const BlockRef& a, const BlockRef& b) {
      return std::tuple(a.first_sequence(), b.sequence, b.content_bytes) <
             std::tuple(b.first_sequence(), a.sequence, a.content_bytes);
    });
    for (BlockRef& block : blocks) {
      if (block.first_sequence() < next && !stream.blocks.empty()) continue;  // twice in the file
      // Blocks that a flight recorder gave up are not lost.
      const bool given_up =
          stream.blocks.empty() && (header_.flags & format::kFileNewest) != 0;
      if (block.first_sequence() > next && !given_up) {
        statistics_.lost_blocks += block.first_sequence() - next;
        block.lost_before = static_cast<uint32_t>(block.first_sequence() - next);
      }
      next = uint64_t{block.sequence} + 1;
      statistics_.dropped_events += block.dropped_events;
      stream.blocks.push_back(block);
    }
    streams_.push_back(std::move(stream));
  }
  by_thread_.clear();
  std::sort(streams_.begin(), streams_.end(),
            [](const ThreadStream& a, const ThreadStream& b) { return a.thread < b.thread; });
}

}  // namespace memtrace::report
