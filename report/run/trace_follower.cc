#include "report/run/trace_follower.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "format/event_words.h"
#include "format/record_decoder.h"
#include "format/record_encoder.h"
#include "report/base/errno_status.h"
#include "report/base/page.h"
#include "report/run/output_name.h"
#include "report/run/reader_lock.h"
#include "report/run/resumed_source.h"
#include "report/run/spool_directory.h"
#include "report/trace/clock_map.h"
#include "report/trace/file_header.h"
#include "report/trace/file_writers.h"
#include "report/trace/trace_metadata.h"

namespace memtrace::report {
namespace {

// Fewer, larger holes: a call for each block would cost more than it gives.
constexpr uint64_t kHandBackBytes = 16 << 20;

uint64_t CountAllocations(std::span<const uint8_t> content) {
  uint64_t allocations = 0;
  const size_t words = content.size() / sizeof(uint64_t);
  for (size_t i = 0; i < words;) {
    uint64_t head;
    memcpy(&head, content.data() + i * sizeof(head), sizeof(head));
    const uint32_t length = format::EventWords(head);
    if (length == 0) break;  // the analyzer says what is wrong
    switch (format::KindOf(head)) {
      case format::EventKind::kMalloc:
      case format::EventKind::kCalloc:
      case format::EventKind::kRealloc:
      case format::EventKind::kWideAlloc:
        if (format::AddressOf(head) != 0) ++allocations;
        break;
      case format::EventKind::kExtended:
        if (format::ExtendedTypeOf(head) == format::ExtendedType::kCustomAlloc) ++allocations;
        break;
      default:
        break;
    }
    i += length;
  }
  return allocations;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceFollower>> TraceFollower::Open(const std::string& raw_path) {
  return Make(raw_path, false);
}

absl::StatusOr<std::unique_ptr<TraceFollower>> TraceFollower::Resume(const std::string& raw_path) {
  return Make(raw_path, true);
}

absl::StatusOr<std::unique_ptr<TraceFollower>> TraceFollower::Make(const std::string& raw_path,
                                                                   bool resume) {
  auto follower = std::unique_ptr<TraceFollower>(new TraceFollower);
  TraceFollower& f = *follower;
  f.raw_path_ = raw_path;
  f.packed_path_ = absl::StrCat(raw_path, kPackedSuffix);
  // For reading: who has it open for writing is how ProcessWatch knows its process.
  f.raw_fd_ = UniqueFd(open(raw_path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!f.raw_fd_.ok()) return ErrnoStatus("cannot open", raw_path, errno);
  const FileSource raw(f.raw_fd_.get());
  if (raw.Size() < sizeof(format::FileHeader)) {
    return absl::FailedPreconditionError(absl::StrCat(raw_path, " has no header yet"));
  }
  const auto header = ReadFileHeader(raw);
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat(raw_path, " ", header.status().message()));
  }
  f.pid_ = header->pid;
  f.ReadName();

  f.source_ = std::make_unique<FileSource>(f.raw_fd_.get());
  f.keeps_newest_ = (header->flags & format::kFileNewest) != 0;
  if (resume && f.keeps_newest_) unlink(f.packed_path_.c_str());  // the raw file has it all
  if (resume && access(f.packed_path_.c_str(), F_OK) == 0) {
    auto resumed = ResumedSource::Open(f.packed_path_, std::move(f.source_));
    if (!resumed.ok()) return resumed.status();
    f.source_ = *std::move(resumed);
    f.taken_over_path_ = std::exchange(f.packed_path_, absl::StrCat(f.packed_path_, ".resumed"));
    unlink(f.packed_path_.c_str());  // of an attempt that was interrupted as well
    f.may_hand_back_ = false;        // offsets are not those of the raw file
  }
  f.packed_fd_ = UniqueFd(open(f.packed_path_.c_str(),
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!f.packed_fd_.ok()) return ErrnoStatus("cannot write", f.packed_path_, errno);
  PromiseToLookForReaders(f.packed_fd_.get());
  PackerOptions options;
  options.seal = true;
  options.lag_bytes = kHandBackBytes;
  options.observer = [&f](const format::BlockHeader& block, std::span<const uint8_t> content) {
    f.Observe(block, content);
  };
  f.packer_ =
      std::make_unique<Packer>(f.source_.get(), f.packed_fd_.get(), f.packed_path_, options);
  f.watch_ = std::make_unique<ProcessWatch>(f.pid_, f.raw_fd_.get());
  const absl::Status started = f.packer_->Start();
  if (!started.ok()) {
    unlink(f.packed_path_.c_str());
    return started;
  }
  return follower;
}

// PROGRAM.PID.START.mtr, where PROGRAM may hold dots and a number may follow START.
void TraceFollower::ReadName() {
  const std::string name(Basename(raw_path_));
  const std::string middle = absl::StrCat(".", pid_, ".");
  const size_t at = name.rfind(middle);
  if (at == name.npos) {
    program_ = name.substr(0, name.find('.'));
    return;
  }
  program_ = name.substr(0, at);
  const std::string rest = name.substr(at + middle.size());
  if (!absl::SimpleAtoi(rest.substr(0, rest.find('.')), &start_ns_)) start_ns_ = 0;
}

void TraceFollower::Observe(const format::BlockHeader& header, std::span<const uint8_t> content) {
  if (header.kind == format::BlockKind::kEvents) {
    if ((header.flags & format::kBlockEarly) == 0) {  // its thread writes it again, with more
      counts_.allocations += CountAllocations(content);
      counts_.dropped_events += header.dropped_events;
    }
    // Events after the exec mean that it failed, where nothing else would in time. A ring's may be
    // from before it.
    const bool recovered = (header.flags & format::kBlockRecovered) != 0;
    const uint64_t ends_by = exec_ns_ + (exec_failure_is_told_ ? kLongestExecNs : 0);
    if (!recovered && header.monotonic_ns > ends_by) counts_.ended_by_exec = false;
    return;
  }
  if (header.kind != format::BlockKind::kMetadata) return;
  format::RecordDecoder records(content.data(), content.size());
  while (records.Next()) {
    if (records.tag() == static_cast<uint64_t>(format::RecordTag::kProcess)) {
      TraceMetadata metadata;
      ClockMap clock;
      metadata.Read(content, &clock);
      watch_->SetPidNamespace(metadata.process.pid_namespace);
      counts_.sampled = metadata.process.sample_bytes != 0;
    }
    if (records.tag() == static_cast<uint64_t>(format::RecordTag::kExecFailed)) {
      execs_.Fail(records.body().Number());
      if (exec_failure_is_told_) counts_.ended_by_exec = execs_.Replaced();
    }
    if (records.tag() != static_cast<uint64_t>(format::RecordTag::kEnd)) continue;
    const EndRecord end = ReadEndRecord(records.body());
    exec_failure_is_told_ = end.failure_is_told;
    if (exec_failure_is_told_) execs_.Begin(end.ticks);
    counts_.ended_by_exec = exec_failure_is_told_ ? execs_.Replaced()
                                                  : end.reason == format::EndReason::kExec;
    exec_ns_ = header.monotonic_ns;
  }
}

bool TraceFollower::BecameAnother() const {
  return counts_.ended_by_exec && foreign_namespace() == 0 && !IsHeld();
}

bool TraceFollower::IsHeld() const { return WritersOf(raw_fd_.get()) == Writers::kSome; }

absl::Status TraceFollower::Advance() {
  if (!failure_.ok() || keeps_newest_) return failure_;
  failure_ = packer_->Advance();
  if (failure_.ok() && may_hand_back_) HandBack();
  return failure_;
}

absl::Status TraceFollower::Append(const std::vector<uint8_t>& records) {
  if (failure_.ok() && !records.empty()) failure_ = packer_->WriteRecords(records);
  return failure_;
}

absl::Status TraceFollower::Finish(const ProgramEnd* end) {
  counts_.newest = keeps_newest_;
  if (!failure_.ok()) return failure_;
  failure_ = packer_->Finish();
  if (const auto& status = packer_->status(); status.has_value()) {
    counts_.dropped_events = std::max(counts_.dropped_events, status->lost_events);
    if (status->lost_events != 0) counts_.loss_error = status->loss_errno;
    counts_.untraced_children = status->untraced_children.count;
    counts_.stopped_at_limit =
        status->stop_why == static_cast<uint32_t>(format::RecordingStop::kMaxBytes);
    counts_.stopped_early = status->stop_why != 0 && !counts_.stopped_at_limit;
  }
  if (failure_.ok() && end != nullptr) failure_ = WriteEnd(*end);
  if (failure_.ok()) failure_ = packer_->Seal();
  return failure_;
}

absl::Status TraceFollower::WriteEnd(const ProgramEnd& end) {
  uint8_t buffer[128];
  format::RecordEncoder encoder(buffer, sizeof(buffer));
  encoder.Begin(format::RecordTag::kObservedEnd);
  encoder.Number(static_cast<uint64_t>(end.signaled ? format::ObservedEndKind::kSignal
                                                    : format::ObservedEndKind::kExit));
  encoder.Number(static_cast<uint64_t>(end.status));
  encoder.Number(end.wall_ns);
  encoder.Number(end.cpu_ns);
  encoder.Number(end.peak_rss_bytes);
  encoder.Number(end.core_dumped ? 1 : 0);
  encoder.End();
  return packer_->WriteRecords({encoder.data(), encoder.size()});
}

// Punches the event blocks that are in the packed file out of the raw one.
void TraceFollower::HandBack() {
  const uint64_t end = packer_->written_position();
  if (end < handed_back_ + kHandBackBytes) return;
  // Who begins to read after this look reads the packed file after it, where all before `end` is.
  if (HasReaders(packed_fd_.get())) return;
  const UniqueFd writable(open(raw_path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  const FileSource raw(raw_fd_.get());
  BlockScanner scanner(&raw);
  uint64_t hole = 0, hole_end = 0;
  const auto punch = [&] {
    const uint64_t begin = (hole + kPageBytes - 1) / kPageBytes * kPageBytes;
    const uint64_t stop = hole_end / kPageBytes * kPageBytes;
    if (begin >= stop) return;
    if (fallocate(writable.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(begin), static_cast<off_t>(stop - begin)) != 0) {
      may_hand_back_ = false;  // this file system cannot
    }
  };
  uint64_t position = std::max<uint64_t>(handed_back_, AlignToBlock(sizeof(format::FileHeader)));
  while (position < end && may_hand_back_) {
    ScannedBlock block;
    const auto state = scanner.At(position, &block);
    if (!state.ok() || *state != BlockState::kBlock) {
      // Before `end` there are blocks only; what this is, is left alone.
      const auto next = scanner.Find(position + format::kBlockAlignment, end);
      if (!next.ok() || !next->has_value()) break;
      block = **next;
      position = block.offset;
    }
    if (block.header.kind == format::BlockKind::kEvents) {
      if (hole_end != position) {
        punch();
        hole = position;
      }
      hole_end = block.end();
    }
    position = block.end();
  }
  punch();
  handed_back_ = end;
}

absl::StatusOr<std::string> TraceFollower::Publish(const std::string& name, bool replace) {
  std::string final_name = name;
  if (replace) {
    if (rename(packed_path_.c_str(), name.c_str()) != 0) {
      return ErrnoStatus("cannot write", name, errno);
    }
  } else {
    auto renamed = RenameWithoutReplacing(packed_path_, name);
    if (!renamed.ok()) return renamed.status();
    final_name = *renamed;
  }
  unlink(raw_path_.c_str());
  if (!taken_over_path_.empty()) unlink(taken_over_path_.c_str());
  return final_name;
}

void TraceFollower::Discard() {
  unlink(raw_path_.c_str());
  unlink(packed_path_.c_str());
  if (!taken_over_path_.empty()) unlink(taken_over_path_.c_str());
}

}  // namespace memtrace::report
