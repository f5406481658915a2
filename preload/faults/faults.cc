#include "preload/faults/faults.h"

#include <cerrno>

#include "format/varint.h"
#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/faults/fault_probe.h"
#include "preload/faults/fault_rings.h"
#include "preload/faults/fault_writer.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

constinit std::atomic<bool> FaultLock::taken_{false};
constinit uint32_t FaultWriter::sequence_ = 0;

bool FaultWriter::Flush() {
  if (out_.size() == 0) return true;
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kFaults;
  header.sequence = ++sequence_;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(out_.size());
  const bool written = g_process.file.Append(header, out_.data());
  if (!written) --sequence_;
  out_.Clear();
  return written;
}

namespace {

constexpr size_t kBufferBytes = 32 << 10;
constexpr size_t kMostBytesOfFault = 4 * format::kMaxVarintBytes;

constinit FaultRings g_rings;
constinit void* g_buffer = nullptr;  // kBufferBytes
constinit uint64_t g_unwritten = 0;  // faults in blocks that could not be written
// When the events began, and how many faults were counted by then or have been told since.
constinit uint64_t g_begun_ns = 0;
constinit uint64_t g_told = 0;

using Sentence = Text<256>;

void ExplainEvents(long error, Sentence& why) {
  char text[16];
  const long bytes = sys::ReadFile("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
  const bool number = bytes > 0;
  why << "perf_event_open: " << ErrorText(error);
  if (error == -ENOSYS || error == -ENOENT) {
    why << ": the kernel has no perf events, or a seccomp filter hides them";
  } else if (error == -EACCES || error == -EPERM) {
    why << ": not permitted here";
    if (number && text[0] != '-' && (text[0] > '2' || bytes > 2)) {
      why << ", for kernel.perf_event_paranoid is above 2";
    } else {
      why << ", by a seccomp filter or a security module, as in most containers";
    }
  }
}

void ExplainRefusal(const FaultRings::Result& result, Sentence& why) {
  switch (result.step) {
    case FaultRings::Result::kEvents:
      ExplainEvents(result.error, why);
      break;
    case FaultRings::Result::kMapping:
      why << "the rings of fault events could not be mapped: " << ErrorText(result.error);
      if (result.error == -EPERM) {
        why << ": kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK are used up";
      }
      break;
    case FaultRings::Result::kProcessors:
      why << "the processors of the process are not known, or too many";
      break;
    case FaultRings::Result::kOpened:
      break;
  }
}

// Measures what a first touch costs here, on some pages of our own. The fastest but one counts, for
// the others may have met an interrupt. This takes 10 us.
uint64_t MeasureFault() {
  constexpr size_t kPages = 8;
  auto* const memory =
      static_cast<volatile char*>(OwnMap(kPages * arch::kPageBytes, /*touch=*/false));
  if (memory == nullptr) return 0;
  uint64_t least = UINT64_MAX, second = UINT64_MAX;
  for (size_t i = 0; i < kPages; ++i) {
    const uint64_t begin = NowNs(CLOCK_MONOTONIC);
    memory[i * arch::kPageBytes] = 1;
    const uint64_t took = NowNs(CLOCK_MONOTONIC) - begin;
    if (took < least) {
      second = least;
      least = took;
    } else if (took < second) {
      second = took;
    }
  }
  OwnUnmap(const_cast<char*>(memory), kPages * arch::kPageBytes);
  return second;
}

void WriteSource(format::FaultSource source, uint64_t ns, const rusage& usage, long error,
                 const Sentence& why, uint64_t ns_per_fault) {
  uint8_t buffer[512];
  FaultWriter writer(buffer, sizeof(buffer));
  format::RecordEncoder& out = writer.Begin(format::FaultTag::kSource);
  out.Number(static_cast<uint64_t>(source));
  out.Number(ns);
  out.Number(static_cast<uint64_t>(usage.ru_minflt));
  out.Number(static_cast<uint64_t>(usage.ru_majflt));
  out.Number(static_cast<uint64_t>(-error));
  out.Bytes(why.view());
  out.Number(g_rings.count());
  out.Number(g_rings.ring_bytes());
  out.Number(ns_per_fault);
  writer.End();
}

void WriteLost(FaultWriter& writer, uint64_t faults, uint64_t ns) {
  format::RecordEncoder& out = writer.Begin(format::FaultTag::kLost);
  out.Number(faults);
  out.Number(ns);
  writer.End();
}

void WriteOwnMemory(FaultWriter& writer, const OwnMemoryChange& change) {
  format::RecordEncoder& out = writer.Begin(format::FaultTag::kOwnMemory);
  out.Number(change.ns);
  out.Number(change.begin);
  out.Number(change.end);
  out.Number(change.came ? 1 : 0);
  writer.End();
}

// Writes the memory of ours that there is already.
void WriteOwnRanges() {
  constexpr size_t kMost = 128;
  OwnRange ranges[kMost];
  FaultWriter writer(g_buffer, kBufferBytes);
  const size_t count = OwnRanges(ranges, kMost);
  for (size_t i = 0; i < count; ++i) {
    WriteOwnMemory(writer, {0, ranges[i].begin, ranges[i].end, /*came=*/true});
  }
}

// One turn, with FaultLock held.
class Turn {
 public:
  explicit Turn(uint64_t until_ns) : writer_(g_buffer, kBufferBytes), until_ns_(until_ns) {}

  void Usage(const rusage& usage) {
    counted_ = static_cast<uint64_t>(usage.ru_minflt) + static_cast<uint64_t>(usage.ru_majflt);
    format::RecordEncoder& out = writer_.Begin(format::FaultTag::kUsage);
    out.Number(until_ns_);
    out.Number(static_cast<uint64_t>(usage.ru_minflt));
    out.Number(static_cast<uint64_t>(usage.ru_majflt));
    writer_.End();
  }
  // Before the faults: the reader has to know by then.
  void OwnMemory() {
    OwnMemoryChange change;
    while (writer_.room() > kBufferBytes / 2 && OwnMemoryChanges::Take(&change)) {
      WriteOwnMemory(writer_, change);
    }
  }
  void Add(const FaultRecord& fault) {
    if (writer_.room() < 2 * kMostBytesOfFault) Close();
    if (fault.ns >= g_begun_ns) g_told += fault.lost != 0 ? fault.lost : 1;
    if (fault.lost != 0) {
      if (open_) EndFaults();
      WriteLost(writer_, fault.lost, fault.ns);
      return;
    }
    if (!open_) Open(0);
    const uint64_t flags = (fault.major ? format::kFaultMajor : 0) |
                           (fault.in_kernel ? format::kFaultInKernel : 0);
    out_->Number(format::ZigZag(fault.ns - before_.ns) << 2 | flags);
    out_->Number(format::ZigZag(uint64_t{fault.tid} - before_.tid));
    out_->Number(format::ZigZag(fault.address - before_.address));
    out_->Number(format::ZigZag(fault.pc - before_.pc));
    before_ = fault;
    ++in_buffer_;
  }
  // At the last look, with a ring that was full: what is counted and was not told. When it was is
  // not known, and what the kernel filled in without an event is among it.
  void AddUntold() {
    if (counted_ <= g_told) return;
    FaultRecord untold;
    untold.lost = counted_ - g_told;
    Add(untold);
  }
  void Finish() {
    if (open_) EndFaults();
    Open(until_ns_);
    EndFaults();
    Close();
  }

 private:
  void Open(uint64_t until_ns) {
    out_ = &writer_.Begin(format::FaultTag::kFaults);
    out_->Number(until_ns);
    before_ = {};
    open_ = true;
  }
  void EndFaults() {
    writer_.End();
    open_ = false;
  }
  void Close() {
    if (open_) EndFaults();
    if (!writer_.Flush()) g_unwritten += in_buffer_;
    in_buffer_ = 0;
    if (g_unwritten != 0 && writer_.room() > kMostBytesOfFault) {
      WriteLost(writer_, g_unwritten, until_ns_);
      g_unwritten = 0;
    }
  }

  FaultWriter writer_;
  format::RecordEncoder* out_ = nullptr;
  const uint64_t until_ns_;
  FaultRecord before_;
  bool open_ = false;
  uint64_t in_buffer_ = 0;
  uint64_t counted_ = 0;  // by getrusage; 0: not known
};

}  // namespace

void OpenFaults() {
  const FaultMode mode = g_process.config.faults;
  // A flight recorder writes over what was told at the start.
  if (mode == FaultMode::kOff || g_process.file.keeps_newest()) return;
  const SignalsBlocked calls;
  if (!calls) return;
  const FaultLock lock;
  if (!lock) return;
  const OwnFaultsScope own;
  FaultWriter::RestartSequence();
  g_unwritten = 0;
  Sentence why;
  FaultRings::Result result;
  if (mode == FaultMode::kSnapshots) {
    why << "MEMTRACE_FAULTS=snapshots asks for none";
    result.error = -EOPNOTSUPP;
  } else if (!FaultEventsAreHarmless()) {
    why << (g_process.must_not_clone.load(std::memory_order_relaxed)
                ? "perf_event_open: a seccomp filter may kill for it, and no process can be made to "
                  "try: it would be the first of a namespace, or Valgrind's"
                : "perf_event_open: a seccomp filter kills for it");
    result.error = -ENOSYS;
  } else {
    if (g_buffer == nullptr) g_buffer = OwnMap(kBufferBytes, /*touch=*/true);
    if (g_buffer == nullptr) return;
    result = g_rings.Open(mode == FaultMode::kUser);
    if (sys::Failed(result.error)) ExplainRefusal(result, why);
  }
  const uint64_t ns_per_fault = MeasureFault();
  // Faults from before this moment are told as a count alone. If there are events of some of them,
  // these are faults of our own, such as MeasureFault() takes.
  const uint64_t ns = NowNs(CLOCK_MONOTONIC);
  rusage usage = {};
  sys::Getrusage(RUSAGE_SELF, &usage);
  g_begun_ns = ns;
  g_told = static_cast<uint64_t>(usage.ru_minflt) + static_cast<uint64_t>(usage.ru_majflt);
  const auto source = sys::Failed(result.error)   ? format::FaultSource::kNone
                      : result.with_kernel ? format::FaultSource::kAllEvents
                                           : format::FaultSource::kUserEvents;
  WriteSource(source, ns, usage, result.error, why, ns_per_fault);
  if (g_rings.count() == 0) return;
  OwnMemoryChanges::Watch();
  WriteOwnRanges();
}

void ForgetFaults() {
  g_rings.Forget();
  OwnMemoryChanges::Forget();
  FaultLock::Forget();
}

void DrainFaults(DrainWhen when) {
  if (g_rings.count() == 0) return;
  if (when == DrainWhen::kIfDue && !g_rings.ShouldDrain() && !OwnMemoryChanges::AreMany()) {
    return;
  }
  if (when == DrainWhen::kIfAny && !g_rings.HasAny()) return;
  const SignalsBlocked no_handler;
  const FaultLock lock;
  if (!lock) return;
  const OwnFaultsScope own;
  const uint64_t until = NowNs(CLOCK_MONOTONIC);
  Turn turn(until);
  {
    const OtherCalls calls;
    rusage usage;
    if (calls && !sys::Failed(sys::Getrusage(RUSAGE_SELF, &usage))) turn.Usage(usage);
  }
  turn.OwnMemory();
  g_rings.Drain([&turn](const FaultRecord& fault) { turn.Add(fault); });
  if (when == DrainWhen::kAtEnd && g_rings.AnyWasFull()) turn.AddUntold();
  turn.Finish();
}

}  // namespace memtrace
