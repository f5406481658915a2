#include "report/run/running_copy.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/whole_io.h"
#include "report/base/errno_status.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"
#include "report/trace/byte_source.h"
#include "report/trace/file_header.h"

namespace memtrace::report {
namespace {

// Threads write their blocks one after the other, and take their places in that order. So a
// block whose predecessor is missing in the copy shows that the predecessor is whole by now,
// at a place before it.
//
// 1. Everything is copied, and then once more the rings, each until it did not change meanwhile.
// 2. Then what has come behind the last block, for a ring was filled anew when its blocks before had been written;
//    again while new rings come.
// 3. The places that are no whole blocks, until they are.
class RunningCopy {
 public:
  // Open files, and their names for messages.
  RunningCopy(int in, int out, const std::string& from, const std::string& to)
      : from_(from), to_(to), source_(in), target_(out) {}

  absl::Status Copy() {
    if (absl::Status status = CopyFrom(0); !status.ok()) return status;
    const auto header = ReadFileHeader(target_);
    if (!header.ok()) return absl::OkStatus();  // its reader says why
    uint64_t from = AlignToBlock(header->header_bytes);
    for (int i = 0; i < kMostEnds; ++i) {
      uint64_t end = from;
      auto rings = CopyRings(from, &end);
      if (!rings.ok()) return rings.status();
      if (absl::Status status = CopyFrom(end); !status.ok()) return status;
      if (i > 0 && *rings == 0) break;
      from = end;
    }
    return Mend(AlignToBlock(header->header_bytes));
  }

 private:
  static constexpr int kMostEnds = 10;    // looks at what has come
  static constexpr int kMostTries = 100;  // for a ring
  // Looks at places, one after the other, that changed nothing.
  static constexpr int kMostIdle = 20;
  static constexpr timespec kPause = {0, 1'000'000};

  struct Range {
    uint64_t begin = 0, end = 0;
  };

  // To the end that the file has now.
  absl::Status CopyFrom(uint64_t begin) {
    const uint64_t end = source_.Size();
    if (absl::Status status = CopySparse({begin, end}); !status.ok()) return status;
    return ftruncate(target_.fd(), static_cast<off_t>(end)) == 0
               ? absl::OkStatus()
               : ErrnoStatus("cannot write", to_, errno);
  }

  absl::Status CopySparse(Range range) {
    for (auto at = static_cast<off_t>(range.begin), end = static_cast<off_t>(range.end);
         at < end;) {
      const off_t data = lseek(source_.fd(), at, SEEK_DATA);
      if (data < 0 || data >= end) break;  // the rest is a hole
      off_t hole = lseek(source_.fd(), data, SEEK_HOLE);
      if (hole < 0 || hole > end) hole = end;
      absl::Status status = CopyRange({static_cast<uint64_t>(data), static_cast<uint64_t>(hole)});
      if (!status.ok()) return status;
      at = hole;
    }
    return absl::OkStatus();
  }

  absl::Status CopyRange(Range range) {
    buffer_.resize(1 << 20);
    while (range.begin < range.end) {
      const size_t wanted = std::min<size_t>(buffer_.size(), range.end - range.begin);
      size_t got;
      if (!base::ReadUpTo(source_.fd(), range.begin, buffer_.data(), wanted, &got)) {
        return ErrnoStatus("cannot read", from_, errno);
      }
      if (got == 0) return ErrnoStatus("cannot read", from_, EIO);
      if (!base::WriteAllAt(target_.fd(), {buffer_.data(), got}, &range.begin)) {
        return ErrnoStatus("cannot write", to_, errno);
      }
    }
    return absl::OkStatus();
  }

  // How many there are at or behind `from`. `*end`: of the last block.
  absl::StatusOr<int> CopyRings(uint64_t from, uint64_t* end) {
    int rings = 0;
    BlockScanner scanner(&target_);
    for (;;) {
      const auto block = scanner.Find(from);
      if (!block.ok()) return block.status();
      if (!block->has_value()) return rings;
      *end = from = (*block)->end();
      if ((*block)->header.kind != format::BlockKind::kRing) continue;
      ++rings;
      if (absl::Status status = CopyRing(**block); !status.ok()) return status;
    }
  }

  // The process may begin to fill it anew meanwhile.
  absl::Status CopyRing(const ScannedBlock& block) {
    const Range range = {block.payload_offset(), std::min(block.payload_end(), source_.Size())};
    for (int i = 0; i < kMostTries; ++i) {
      RingRemains before, after;
      absl::Status status = ReadRing(source_, block, /*events=*/false, &before);
      if (status.ok()) status = CopyRange(range);
      if (status.ok()) status = ReadRing(source_, block, /*events=*/false, &after);
      if (!status.ok()) return status;
      if (before.header.thread == after.header.thread &&
          before.header.sequence == after.header.sequence)
        break;
    }
    return absl::OkStatus();
  }

  // Places before the last block of the copy that are no whole blocks.
  absl::StatusOr<std::vector<Range>> FindBad(Range range) {
    std::vector<Range> bad;
    BlockScanner scanner(&target_);
    while (range.begin < range.end) {
      const auto block = scanner.Find(range.begin, range.end);
      if (!block.ok()) return block.status();
      if (!block->has_value()) {
        if (range.end != UINT64_MAX) bad.push_back(range);
        break;
      }
      const ScannedBlock& found = **block;
      if (found.offset > range.begin) bad.push_back({range.begin, found.offset});
      if (found.header.kind != format::BlockKind::kRing &&
          found.header.kind != format::BlockKind::kStatus) {
        const absl::Status status = payload_.Read(target_, found, &content_);
        if (status.code() == absl::StatusCode::kDataLoss)
          bad.push_back({found.offset, found.end()});
      }
      range.begin = found.end();
    }
    return bad;
  }

  absl::Status Mend(uint64_t from) {
    auto bad = FindBad({from, UINT64_MAX});
    for (int idle = 0; bad.ok() && !bad->empty() && idle < kMostIdle;) {
      std::vector<Range> still_bad;
      bool changed = false;
      for (const Range& range : *bad) {
        absl::Status status = CopySparse({range.begin, std::min(range.end, source_.Size())});
        if (!status.ok()) return status;
        auto here = FindBad(range);
        if (!here.ok()) return here.status();
        changed |= here->size() != 1 || here->front().begin != range.begin ||
                   here->front().end != range.end;
        still_bad.insert(still_bad.end(), here->begin(), here->end());
      }
      *bad = std::move(still_bad);
      idle = changed ? 0 : idle + 1;
      if (!changed) nanosleep(&kPause, nullptr);
    }
    return bad.status();
  }

  const std::string from_, to_;
  const FileSource source_, target_;
  BlockPayload payload_;
  std::vector<uint8_t> content_;
  std::vector<char> buffer_;
};

}  // namespace

absl::Status CopyRunningFile(int in, const std::string& from, int out, const std::string& to) {
  return RunningCopy(in, out, from, to).Copy();
}

}  // namespace memtrace::report
