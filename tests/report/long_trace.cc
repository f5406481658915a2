#include "tests/report/long_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "format/event_words.h"
#include "format/trace_format.h"
#include "report/base/errno_status.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"
#include "report/trace/block_writer.h"
#include "report/trace/byte_source.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::EventKind;

constexpr size_t kBlockWords = (1 << 20) / sizeof(uint64_t);
constexpr uint32_t kFrames = 12;
constexpr uint64_t kEventTicks = 25;      // between two events
constexpr uint32_t kEventsOfATurn = 16;   // of one thread, behind one stamp
constexpr unsigned kOfWhichOld = 8;       // one in so many blocks lives long
constexpr uint64_t kHeapOfThread = uint64_t{1} << 40;

struct Block {
  uint64_t address;
  uint32_t size;
  uint32_t thread;  // whose heap it is of
};

// What a thread has, and what it has not written yet.
struct Worker {
  uint32_t thread = 0;
  uint32_t sequence = 0;
  uint64_t top = 0;  // of its heap
  std::vector<std::vector<uint64_t>> free;  // by size / 16, the latest last
  std::vector<uint64_t> words;
  std::vector<Block> young;  // most will be freed soon
};

class Maker {
 public:
  Maker(int fd, const std::string& path, const LongTraceOptions& options)
      : options_(options), writer_(fd, path, options.level), workers_(options.threads) {}

  absl::Status Write();
  const LongTraceFacts& facts() const { return facts_; }

 private:
  static uint32_t SizeOf(uint32_t site) {
    const uint32_t mixed = site * 2654435761u;
    return 8 + (mixed >> 20) % (mixed % 8 == 0 ? 2000 : 120);
  }

  static uint32_t UsableOf(uint32_t size) { return std::max(24u, ((size + 23) & ~15u) - 8); }

  absl::Status WriteHead();
  absl::Status Flush(Worker& worker);
  void DefineStacks(Worker& worker);
  void Stamp(Worker& worker) { worker.words.push_back(format::TimeWord(ticks_)); }
  void Alloc(Worker& worker);
  void Free(Worker& worker);

  const LongTraceOptions options_;
  BlockWriter writer_;
  std::vector<Worker> workers_;
  std::vector<Block> old_;  // that stay long, of all threads
  std::mt19937_64 random_{42};
  uint64_t ticks_ = 0, start_ticks_ = 0;
  LongTraceFacts facts_;
};

// Header and records are those of a small trace that ends when this one will.
absl::Status Maker::WriteHead() {
  TraceBuilder::Options head_options;
  head_options.stamp_rule = format::StampRule::kChangeOfOwner;
  TraceBuilder head(head_options);
  for (uint32_t i = 0; i < options_.threads; ++i) head.Thread(i + 1, 100 + i, "worker", 1000);
  start_ticks_ = ticks_ = head.TicksAt(2000);
  head.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x8000000,
              0x400000, "/nowhere/app");
  head.End(0, 2000 + (options_.events + 2) * kEventTicks);
  const MemorySource source(head.Build());
  format::FileHeader header;
  auto read = source.ReadAt(0, {reinterpret_cast<uint8_t*>(&header), sizeof(header)});
  if (!read.ok()) return read.status();
  header.flags |= format::kFilePacked;
  absl::Status status = writer_.WriteFileHeader(header);
  BlockScanner scanner(&source);
  BlockPayload payload;
  std::vector<uint8_t> content;
  ScannedBlock block;
  for (uint64_t at = AlignToBlock(header.header_bytes); status.ok(); at = block.end()) {
    auto state = scanner.At(at, &block);
    if (!state.ok()) return state.status();
    if (*state != BlockState::kBlock) break;
    status = payload.Read(source, block, &content);
    if (status.ok()) status = writer_.Write(block.header, content);
  }
  return status;
}

absl::Status Maker::Flush(Worker& worker) {
  if (worker.words.empty()) return absl::OkStatus();
  format::BlockHeader header{};
  header.kind = format::BlockKind::kEvents;
  header.thread = worker.thread;
  header.sequence = ++worker.sequence;
  header.clock_ticks = ticks_;
  // A tick is a nanosecond.
  header.monotonic_ns = TraceBuilder::kStartNs + (ticks_ - TraceBuilder::kStartTicks);
  absl::Status status =
      writer_.Write(header, {reinterpret_cast<const uint8_t*>(worker.words.data()),
                             worker.words.size() * sizeof(uint64_t)});
  worker.words.clear();
  return status;
}

// Stacks share their outer frames, as calls do. Slot `site` is the innermost frame of a site.
void Maker::DefineStacks(Worker& worker) {
  for (uint32_t site = 1; site <= options_.sites; ++site) {
    const uint32_t inner = std::min(site, 3u);
    const uint32_t parent = site / 3;
    const bool root = parent == 0;
    const uint32_t nodes = root ? kFrames : inner;
    // The nodes between are slots behind those of the sites.
    const uint32_t first = options_.sites + 1 + site * kFrames;
    worker.words.push_back(format::PathHead(root ? format::kNoSlot : parent, first, nodes));
    for (uint32_t i = 0; i < nodes; ++i) {
      worker.words.push_back(format::NodeWord(0x400000 + (site * kFrames + i) * 37, 0));
    }
    worker.words.push_back(format::PathHead(first + nodes - 1, site, 1));
    worker.words.push_back(format::NodeWord(0x400000 + site * 53, 0));
  }
}

void Maker::Alloc(Worker& worker) {
  // A few sites do most of the work.
  const double skewed = static_cast<double>(random_() >> 11) * 0x1p-53;
  const auto site =
      1 + static_cast<uint32_t>(skewed * skewed * skewed * (options_.sites - 1));
  Block block{0, SizeOf(site), worker.thread};
  const uint32_t usable = UsableOf(block.size);
  std::vector<uint64_t>& free = worker.free[usable / 16];
  if (free.empty()) {
    block.address = worker.top + 16;
    worker.top += usable + 8;
  } else {
    block.address = free.back();
    free.pop_back();
  }
  worker.words.push_back(format::Head(EventKind::kMalloc, block.address, usable - block.size));
  worker.words.push_back(block.size | uint64_t{site} << 32);
  ++facts_.allocations;
  ++facts_.live_blocks;
  facts_.bytes_allocated += block.size;
  facts_.live_bytes += block.size;
  facts_.peak_live_bytes = std::max(facts_.peak_live_bytes, facts_.live_bytes);
  (random_() % kOfWhichOld == 0 ? old_ : worker.young).push_back(block);
}

void Maker::Free(Worker& worker) {
  const bool old = worker.young.empty() || (!old_.empty() && random_() % kOfWhichOld == 0);
  std::vector<Block>& from = old ? old_ : worker.young;
  const size_t near = old ? from.size() : std::min<size_t>(from.size(), 8);
  const size_t i = from.size() - 1 - random_() % near;
  const Block block = from[i];
  from[i] = from.back();
  from.pop_back();
  if (block.thread != worker.thread) Stamp(worker);
  worker.words.push_back(format::Head(EventKind::kFree, block.address));
  // What another thread frees stays in that one's cache, as if for ever.
  if (block.thread == worker.thread) worker.free[UsableOf(block.size) / 16].push_back(block.address);
  ++facts_.frees;
  --facts_.live_blocks;
  facts_.live_bytes -= block.size;
}

absl::Status Maker::Write() {
  absl::Status status = WriteHead();
  for (uint32_t i = 0; i < options_.threads; ++i) {
    Worker& worker = workers_[i];
    worker.thread = i + 1;
    worker.top = kHeapOfThread * (i + 1);
    worker.free.resize(256);
    Stamp(worker);
    DefineStacks(worker);
  }
  for (uint64_t event = 0; status.ok() && event < options_.events; ++event) {
    Worker& worker = workers_[event / kEventsOfATurn % options_.threads];
    ticks_ += kEventTicks;
    if (event % kEventsOfATurn == 0) Stamp(worker);
    const bool none = worker.young.empty() && old_.empty();
    const bool few = facts_.live_blocks < options_.live_blocks;
    // Two allocations to a free until there are enough blocks.
    if (none || random_() % 6 < (few ? 4u : 3u)) {
      Alloc(worker);
    } else {
      Free(worker);
    }
    if (worker.words.size() + 8 >= kBlockWords) status = Flush(worker);
  }
  ticks_ += kEventTicks;
  for (Worker& worker : workers_) {
    if (status.ok()) status = Flush(worker);
  }
  facts_.file_bytes = writer_.bytes_written();
  return status;
}

}  // namespace

absl::Status WriteLongTrace(const std::string& path, const LongTraceOptions& options,
                            LongTraceFacts* facts) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus("cannot open", path, errno);
  Maker maker(fd, path, options);
  absl::Status status = maker.Write();
  if (close(fd) != 0 && status.ok()) status = ErrnoStatus("cannot write", path, errno);
  *facts = maker.facts();
  return status;
}

}  // namespace memtrace::report
