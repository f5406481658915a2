#include "preload/faults/page_snapshot.h"

#include <sys/mman.h>

#include <cstring>

#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/faults/fault_writer.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/proc_text.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

using format::FaultTag;
using format::PageState;

constexpr long kFirstGrowthKb = 16 << 10;
constexpr uint32_t kMostAtMarks = 64;
// The most pages of a snapshot: 64 GiB. A program with more has reserved memory and
// touched little of it.
constexpr uint64_t kMostPages = uint64_t{16} << 20;
constexpr size_t kChunkPages = 4096;
constexpr size_t kSmallestText = 256 << 10, kLargestText = 64 << 20;
constexpr size_t kWriterBytes = 64 << 10;
constexpr size_t kMostOwn = 512;

// Touches memory that the kernel will write to, so that the faults are ours: see sys::ReadFile.
void Touch(volatile void* memory, size_t bytes) {
  auto* const at = static_cast<volatile char*>(memory);
  for (size_t i = 0; i < bytes; i += arch::kPageBytes) at[i] = 0;
  at[bytes - 1] = 0;
}

constinit std::atomic<long> g_next_kb{kFirstGrowthKb};
constinit std::atomic<uint32_t> g_snapshots{0};
constinit std::atomic<uint32_t> g_at_marks{0};
constinit std::atomic<bool> g_is_fork_child{false};

// The buffers of one snapshot, in a mapping of their own.
struct Work {
  uint8_t writer[kWriterBytes];
  uint64_t entries[kChunkPages];
  unsigned char resident[kChunkPages];
  OwnRange own[kMostOwn];
  char rollup[4 << 10], status[4 << 10];
};

struct Mapping : MapLine {
  uint64_t kib[format::kMappingNumbers] = {};

  bool any() const { return kib[0] + kib[8] != 0; }
  // Writable, or private memory of no file, which was and may hold blocks: a program seals what it
  // has filled (mprotect). But not what is reserved, of which a few pages are there.
  bool holds_data() const {
    if (permissions.size() != 4) return false;
    if (permissions[1] == 'w') return true;
    const bool is_memory = path.empty() || path == "[heap]" || path.starts_with("[anon:");
    constexpr uint64_t kMostForOne = 64;
    return is_memory && inode == 0 && permissions[3] == 'p' &&
           (end - begin) >> 10 <= kMostForOne * (kib[0] + kib[8]);
  }
};

constexpr std::string_view kNames[format::kMappingNumbers] = {
    "Rss:",           "Pss:",     "Shared_Clean:", "Shared_Dirty:", "Private_Clean:",
    "Private_Dirty:", "Anonymous:", "AnonHugePages:", "Swap:",        "SwapPss:",
    "Locked:",        "ShmemPmdMapped:", "FilePmdMapped:"};

// The lines of smaps, a mapping after the other.
class SmapsReader {
 public:
  explicit SmapsReader(std::string_view text) : text_(text) {}

  bool Next(Mapping* mapping) {
    *mapping = {};
    std::string_view line;
    do {
      if (!TakeLine(text_, &line)) return false;
    } while (!ParseMapLine(line, mapping));
    mapping->path = First(mapping->path, 4000);
    // The figures of a mapping have names that begin with a capital letter.
    while (!text_.empty() && text_[0] >= 'A' && text_[0] <= 'Z') {
      TakeLine(text_, &line);
      for (size_t i = 0; i < format::kMappingNumbers; ++i) {
        if (!line.starts_with(kNames[i])) continue;
        std::string_view value = From(line, kNames[i].size());
        std::string_view word = TakeWord(value);
        mapping->kib[i] = TakeNumber(word, 10);
        break;
      }
    }
    return true;
  }

 private:
  std::string_view text_;
};

PageState StateOf(uint64_t entry) {
  constexpr uint64_t kPresent = uint64_t{1} << 63, kSwap = uint64_t{1} << 62,
                     kFile = uint64_t{1} << 61, kExclusive = uint64_t{1} << 56;
  if ((entry & kPresent) != 0) {
    if ((entry & kFile) != 0) return PageState::kFile;
    return (entry & kExclusive) != 0 ? PageState::kPrivate : PageState::kShared;
  }
  return (entry & kSwap) != 0 ? PageState::kSwapped : PageState::kAbsent;
}

class Snapshot {
 public:
  Snapshot(Work& work, long pagemap)
      : work_(work), writer_(work.writer, kWriterBytes), pagemap_(pagemap) {}

  void Begin(format::SnapshotReason reason, std::string_view name, std::string_view rollup,
             std::string_view status) {
    format::RecordEncoder& out = writer_.Begin(FaultTag::kSnapshot);
    out.Number(g_snapshots.fetch_add(1, std::memory_order_relaxed) + 1);
    out.Number(static_cast<uint64_t>(reason));
    out.Number(g_clock.OrderedNow());
    out.Number(static_cast<uint64_t>(sys::Failed(pagemap_) ? format::PageSource::kMincore
                                                           : format::PageSource::kPagemap));
    out.Number(sys::Failed(pagemap_) ? static_cast<uint64_t>(-pagemap_) : 0);
    out.Bytes(rollup);
    out.Bytes(status);
    out.Bytes(First(name, 256));
    writer_.End();
    const size_t own = OwnRanges(work_.own, kMostOwn);
    for (size_t i = 0; i < own; ++i) {
      Room(64);
      format::RecordEncoder& range = writer_.Begin(FaultTag::kOwnRange);
      range.Number(work_.own[i].begin);
      range.Number(work_.own[i].end);
      writer_.End();
    }
  }

  void Add(const Mapping& mapping) {
    Room(mapping.path.size() + 512);
    format::RecordEncoder& out = writer_.Begin(FaultTag::kMapping);
    out.Number(mapping.begin);
    out.Number(mapping.end);
    out.Bytes(mapping.permissions);
    out.Number(mapping.offset);
    out.Number(mapping.inode);
    out.Bytes(mapping.path);
    for (const uint64_t kib : mapping.kib) out.Number(kib);
    writer_.End();
    if (mapping.holds_data() && mapping.any()) Pages(mapping);
  }

  void Finish() {
    Room(64);
    writer_.Begin(FaultTag::kSnapshotDone).Number(left_out_);
    writer_.End();
  }

 private:
  void Room(size_t bytes) {
    if (writer_.room() < bytes) writer_.Flush();
  }

  // The states of `pages` pages at `address` into work_.entries. False: not known.
  bool Read(uint64_t address, size_t pages) {
    if (!sys::Failed(pagemap_)) {
      const size_t bytes = pages * sizeof(uint64_t);
      const long got = sys::Pread(pagemap_, work_.entries, bytes,
                                  address / arch::kPageBytes * sizeof(uint64_t));
      if (got != static_cast<long>(bytes)) return false;
      for (size_t i = 0; i < pages; ++i) {
        work_.entries[i] = static_cast<uint64_t>(StateOf(work_.entries[i]));
      }
      return true;
    }
    const long result = sys::Call(SYS_mincore, static_cast<long>(address),
                                  static_cast<long>(pages * arch::kPageBytes),
                                  reinterpret_cast<long>(work_.resident));
    if (sys::Failed(result)) return false;
    for (size_t i = 0; i < pages; ++i) {
      work_.entries[i] = static_cast<uint64_t>((work_.resident[i] & 1) != 0 ? PageState::kResident
                                                                           : PageState::kAbsent);
    }
    return true;
  }

  void Pages(const Mapping& mapping) {
    uint64_t address = mapping.begin;
    Room(kWriterBytes / 2);
    format::RecordEncoder* out = Open(address);
    uint64_t state = UINT64_MAX, run = 0;
    while (address < mapping.end) {
      const uint64_t left = (mapping.end - address) / arch::kPageBytes;
      const size_t pages = left < kChunkPages ? static_cast<size_t>(left) : kChunkPages;
      if (pages == 0) break;
      if (asked_ + pages > kMostPages || !Read(address, pages)) {
        left_out_ += left;
        break;
      }
      asked_ += pages;
      for (size_t i = 0; i < pages; ++i) {
        if (work_.entries[i] == state) {
          ++run;
          continue;
        }
        Put(*out, state, run);
        state = work_.entries[i];
        run = 1;
      }
      address += pages * arch::kPageBytes;
      // A chunk has as many runs as pages at most, of two bytes each.
      if (writer_.room() < kChunkPages * 3) {
        Put(*out, state, run);
        state = UINT64_MAX;
        writer_.End();
        writer_.Flush();
        out = Open(address);
      }
    }
    Put(*out, state, run);
    writer_.End();
  }

  format::RecordEncoder* Open(uint64_t address) {
    format::RecordEncoder* out = &writer_.Begin(FaultTag::kPages);
    out->Number(address);
    return out;
  }
  static void Put(format::RecordEncoder& out, uint64_t state, uint64_t run) {
    if (state == UINT64_MAX || run == 0) return;
    out.Number(state);
    out.Number(run);
  }

  Work& work_;
  FaultWriter writer_;
  const long pagemap_;
  uint64_t asked_ = 0, left_out_ = 0;
};

std::string_view ReadText(std::string_view name, char* buffer, size_t capacity) {
  const long bytes =
      ReadOwnProc(name, [&](const char* path) { return sys::ReadFile(path, buffer, capacity); });
  return {buffer, bytes > 0 ? static_cast<size_t>(bytes) : 0};
}

// False: a larger one is needed, for the text has no room in `capacity` bytes.
bool TakeWith(Work& work, char* text, size_t capacity, format::SnapshotReason reason,
              std::string_view name) {
  // The pages that this needs are touched first, for the kernel is about to count them: some 700
  // bytes of smaps for each mapping.
  constexpr size_t kBytesOfMapping = 768;
  const std::string_view maps = ReadText("maps", text, capacity);
  // No /proc, or no descriptor is to be had: nor will more room help.
  if (maps.empty()) return true;
  size_t bytes = maps.size();
  for (const char c : maps) bytes += c == '\n' ? kBytesOfMapping : 0;
  if (bytes > capacity && capacity < kLargestText) return false;
  Touch(text, bytes < capacity ? bytes : capacity);
  Touch(&work, sizeof(work));
  const long pagemap = OpenOwnPagemap();
  const std::string_view rollup = ReadText("smaps_rollup", work.rollup, sizeof(work.rollup));
  const std::string_view smaps_text = ReadText("smaps", text, capacity);
  const bool whole = smaps_text.size() < capacity;
  if (whole && !smaps_text.empty()) {
    const std::string_view status = ReadOwnStatus(work.status, sizeof(work.status));
    Snapshot snapshot(work, pagemap);
    snapshot.Begin(reason, name, rollup, status);
    SmapsReader smaps(smaps_text);
    for (Mapping mapping; smaps.Next(&mapping);) snapshot.Add(mapping);
    snapshot.Finish();
  }
  if (!sys::Failed(pagemap)) sys::Close(pagemap);
  return whole;
}

// A fork child that touched less than a sixteenth of what is large: the rest is its parent's, which
// tells of it. Many live for a moment, and to look through a gigabyte takes a quarter of a second.
bool IsInherited() {
  if (!g_is_fork_child.load(std::memory_order_relaxed)) return false;
  rusage usage = {};
  sys::Getrusage(RUSAGE_SELF, &usage);
  constexpr long kPageKb = arch::kPageBytes >> 10;
  return usage.ru_maxrss >= kFirstGrowthKb && usage.ru_minflt * 16 < usage.ru_maxrss / kPageKb;
}

}  // namespace

void TakePageSnapshot(format::SnapshotReason reason, std::string_view name) {
  if (g_process.config.faults == FaultMode::kOff || g_process.file.keeps_newest()) return;
  if (reason == format::SnapshotReason::kEnd && IsInherited()) return;
  if (reason == format::SnapshotReason::kMark &&
      g_at_marks.fetch_add(1, std::memory_order_relaxed) >= kMostAtMarks) {
    return;
  }
  const SignalsBlocked calls;
  if (!calls || IsVforkChild()) return;
  const FaultLock lock;
  if (!lock) return;
  const OwnFaultsScope own;
  auto* const work = static_cast<Work*>(OwnMap(sizeof(Work), /*touch=*/false));
  if (work == nullptr) return;
  for (size_t capacity = kSmallestText; capacity <= kLargestText; capacity *= 4) {
    auto* const text = static_cast<char*>(OwnMap(capacity, /*touch=*/false));
    if (text == nullptr) break;
    const bool done = TakeWith(*work, text, capacity, reason, name);
    OwnUnmap(text, capacity);
    if (done) break;
  }
  OwnUnmap(work, sizeof(Work));
}

bool TakePageSnapshotIfGrown(long peak_kb) {
  long due = g_next_kb.load(std::memory_order_relaxed);
  if (peak_kb < due ||
      !g_next_kb.compare_exchange_strong(due, peak_kb + peak_kb / 2, std::memory_order_relaxed)) {
    return false;
  }
  TakePageSnapshot(format::SnapshotReason::kGrowth);
  return true;
}

void ForgetPageSnapshots() {
  // The memory that it has from its parent is no growth of its own.
  rusage usage = {};
  if (const OtherCalls calls; calls) sys::Getrusage(RUSAGE_SELF, &usage);
  const long grown = usage.ru_maxrss + usage.ru_maxrss / 2;
  g_next_kb.store(grown > kFirstGrowthKb ? grown : kFirstGrowthKb, std::memory_order_relaxed);
  g_is_fork_child.store(true, std::memory_order_relaxed);
  g_snapshots.store(0, std::memory_order_relaxed);
  g_at_marks.store(0, std::memory_order_relaxed);
}

}  // namespace memtrace
