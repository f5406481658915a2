#include "report/trace/trace_reader.h"

#include <time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "report/base/clock.h"
#include "report/trace/file_header.h"
#include "report/trace/file_writers.h"
#include "report/trace/live_trace.h"

namespace memtrace::report {
namespace {

absl::Status ChangedAt(uint64_t offset) {
  return absl::DataLossError(
      absl::StrCat("damaged at byte ", offset, ": the file changed while it was read"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::OpenByName(const std::string& path) {
  if (const LiveTrace* live = LiveTrace::Find(path); live != nullptr)
    return FromSource(live->source(), path, live->opened_ns());
  auto source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  const auto header = ReadFileHeader(**source);
  const bool is_live =
      header.ok() && (header->flags & format::kFilePacked) == 0 &&
      (WritersOf((*source)->fd()) == Writers::kSome || IsMappedBy(header->pid, path));
  return FromSource(*std::move(source), path, is_live ? NowNs(CLOCK_MONOTONIC) : 0);
}

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path) {
  auto reader = OpenByName(path);
  if (!reader.ok()) return reader;
  const TraceStatistics& statistics = (*reader)->statistics();
  if (statistics.metadata_blocks + statistics.event_blocks + statistics.ring_blocks == 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " ", kNothingBehindTheHeader));
  }
  return reader;
}

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::FromSource(
    std::unique_ptr<ByteSource> source, const std::string& name, uint64_t opened_ns) {
  std::unique_ptr<TraceReader> reader(new TraceReader(std::move(source), name));
  reader->opened_ns_ = opened_ns;
  absl::Status status = reader->Index();
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(name, " ", status.message()));
  }
  return reader;
}

// While the process is at work, the header of a block may be there a moment before its
// payload: so it reads again.
absl::Status TraceReader::RetryWhileWritten(absl::FunctionRef<absl::Status()> read) const {
  constexpr int kMostPauses = 20;
  absl::Status status = read();
  for (int i = 0; i < kMostPauses && opened_ns_ != 0 && absl::IsDataLoss(status); ++i) {
    const timespec pause = {0, 1'000'000};
    nanosleep(&pause, nullptr);
    status = read();
  }
  return status;
}

bool TraceReader::NoteDamage(uint64_t offset, absl::string_view message) {
  if (!damages_.insert(offset).second) return false;
  if (offset < damage_offset_) {
    damage_offset_ = offset;
    damage_ = std::string(message);
  }
  return true;
}

void TraceReader::NoteCutWithinBlock() {
  cut_ = true;
  cut_place_ = absl::StrCat("the file ends at byte ", source_->Size(),
                            ", within a block: it was cut there, or its writer was killed; "
                            "what was whole before was read");
}

std::string TraceReader::damage() const {
  if (damages_.empty()) return "";
  std::string text = damage_;
  if (damages_.size() > 1) {
    absl::StrAppend(&text, "; ", damages_.size() - 1,
                    damages_.size() == 2 ? " more damaged place follows"
                                         : " more damaged places follow");
  }
  return absl::StrCat(text, "; everything else was read");
}

absl::Status TraceReader::DecodeEvents(const ThreadStream& stream, const BlockRef& ref,
                                       BlockPayload* payload,
                                       std::vector<uint64_t>* words) const {
  payload->ForgetStamps();  // what comes from a ring has none
  if (ref.is_ring) {
    *words = ring_words_.at(ref.offset);
    return absl::OkStatus();
  }
  BlockScanner scanner(source_.get());
  ScannedBlock block;
  auto state = scanner.At(ref.offset, &block);
  absl::Status status = state.status();
  // A flight recorder that runs writes over what it has written.
  if (state.ok() &&
      ((*state != BlockState::kBlock && *state != BlockState::kIncomplete) ||
       block.header.kind != format::BlockKind::kEvents || block.header.thread != stream.thread ||
       block.header.sequence != ref.sequence)) {
    status = ChangedAt(ref.offset);
  }
  if (status.ok())
    status = RetryWhileWritten([&] { return payload->ReadWords(*source_, block, words); });
  if (!status.ok()) {
    const auto copy = ring_copies_.find(KeyOf(stream.thread, ref.sequence));
    ScannedBlock ring;
    RingRemains remains;
    if (copy != ring_copies_.end() && ref.merged_before == 0 &&
        scanner.At(copy->second, &ring).ok() && ReadSteadyRing(*source_, ring, &remains).ok() &&
        KeyOf(remains.header.thread, remains.header.sequence) == copy->first &&
        !remains.events.empty()) {
      *words = remains.Words();
      status = absl::OkStatus();
    }
  }
  if (!status.ok()) words->clear();
  return status;
}

bool TraceReader::NoteOutcome(const BlockRef& ref, const absl::Status& status) {
  if (status.ok()) return true;
  NoteAgain({{ref.offset, std::string(status.message()), true}});
  return false;
}

bool TraceReader::ReadEvents(const ThreadStream& stream, const BlockRef& ref,
                             std::vector<uint64_t>* words) {
  return NoteOutcome(ref, DecodeEvents(stream, ref, &payload_, words));
}

bool TraceReader::ReadScanBlock(const ScanBlockRef& ref, std::vector<uint8_t>* content) {
  return ReadBlockAt(ref.offset, ref.content_bytes, content);
}

bool TraceReader::ReadBlockAt(uint64_t offset, uint32_t content_bytes,
                              std::vector<uint8_t>* content) {
  BlockScanner scanner(source_.get());
  ScannedBlock block;
  auto state = scanner.At(offset, &block);
  absl::Status status = state.status();
  if (state.ok() && (*state != BlockState::kBlock ||
                     block.header.content_bytes != content_bytes)) {
    status = ChangedAt(offset);
  }
  if (status.ok())
    status = RetryWhileWritten([&] { return payload_.Read(*source_, block, content); });
  if (status.ok()) return true;
  content->clear();
  NoteDamage(offset, status.message());
  return false;
}

void TraceReader::NoteAgain(const std::vector<EventDamage>& damages) {
  for (const EventDamage& damage : damages) {
    const bool is_new = NoteDamage(damage.offset, damage.message);
    if (damage.lost && is_new) ++statistics_.lost_blocks;
    event_damages_.push_back(damage);
  }
}

void TraceReader::NoteBadEvent(const BlockRef& block, size_t word) {
  NoteAgain({{block.offset,
              absl::StrCat("damaged at byte ", block.offset, ": word ", word,
                           " of the block is not an event; the rest of the block was left out"),
              false}});
}

}  // namespace memtrace::report
