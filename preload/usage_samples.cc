#include "preload/usage_samples.h"

#include <atomic>
#include <string_view>

#include "preload/arch/arch.h"
#include "preload/extended_event.h"
#include "preload/faults/faults.h"
#include "preload/faults/page_snapshot.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/leak_scan/scan_copy.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/pace.h"
#include "preload/recorder.h"
#include "preload/recording_switch.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

// getrusage costs 0.6 us, /proc/self/statm 3 us more.
constexpr uint64_t kResidentUs = 10'000;
// Where allocations are sampled the events themselves are about a millisecond apart, and a usage
// sample with each would cost a third of what the event does.
constexpr uint64_t kSparseSampleUs = 10'000;
constexpr uint64_t kSparseResidentUs = 50'000;

constinit std::atomic<uint64_t> g_last_sample{0};
constinit std::atomic<uint64_t> g_last_resident{0};
constinit Pace g_usage_pace;

// By a pace of their own: those that come as the program goes on. kIfSparse: with few events.
enum class UsageWhen { kIfSparse, kIfCheap, kNow };

// One thread takes the sample; the others go on.
bool TakeTurn(uint64_t last, uint64_t now) {
  if (!g_last_sample.compare_exchange_strong(last, now, std::memory_order_relaxed)) return false;
  // No thread rests between two stamps for long while others go on.
  BeginEpoch();
  return true;
}

// In a frame of its own: a scan that TakeSample() begins looks at that one's,
// where old words may stand.
[[gnu::noinline]] void PutUsage(ThreadState& state, uint64_t now, UsageWhen when) {
  const uint64_t asked = g_clock.Now();
  if (when != UsageWhen::kNow && !g_usage_pace.IsDue(asked)) return;
  rusage usage;
  if (sys::Failed(sys::Getrusage(RUSAGE_SELF, &usage))) return;
  g_usage_pace.Took(asked, g_clock.Now(), kLongestPauseUs * g_clock.ticks_per_us());
  const uint64_t own_faults = own_minor_faults();  // those of a snapshot come behind
  if (TakePageSnapshotIfGrown(OwnPeakKb(usage.ru_maxrss))) now = g_clock.OrderedNow();
  uint64_t resident = 0;
  uint64_t last_resident = g_last_resident.load(std::memory_order_relaxed);
  const uint64_t resident_us = when == UsageWhen::kIfSparse ? kSparseResidentUs : kResidentUs;
  if (now - last_resident >= resident_us * g_clock.ticks_per_us() &&
      g_last_resident.compare_exchange_strong(last_resident, now, std::memory_order_relaxed)) {
    resident = ResidentBytes();
  }
  Put(state, format::TimeWord(now));
  PutExtended(state, format::ExtendedType::kUsage,
              {static_cast<uint64_t>(usage.ru_minflt), static_cast<uint64_t>(usage.ru_majflt),
               resident, static_cast<uint64_t>(OwnPeakKb(usage.ru_maxrss)) * 1024, own_faults,
               Pair(static_cast<uint64_t>(usage.ru_nvcsw),
                    static_cast<uint64_t>(usage.ru_nivcsw))});
}

// `calls`: the outermost of this thread, which knows what the program itself blocks.
void TakeSample(ThreadState& state, uint64_t now, UsageWhen when, const SignalsBlocked& calls) {
  DrainFaults(DrainWhen::kIfDue);
  if (!calls) return;
  if (g_scanning_copy.load(std::memory_order_relaxed) != 0) ReapScan();
  if (IsScanRequested()) [[unlikely]] AnswerScanRequest(state, ~calls.before());
  if (!state.ring.HasRoom(kShortEventWords)) SpoolThread(state);
  PutUsage(state, now, when);
}

// `last`: of the sample before, as the caller saw it.
void SampleAfter(uint64_t last, ThreadState& state, uint64_t now, UsageWhen when) {
  if (!TakeTurn(last, now)) return;
  // A handler that jumps would leave a file open.
  const SignalsBlocked calls;
  if (calls && IsVforkChild()) {  // its parent's turn is still to come
    g_last_sample.store(last, std::memory_order_relaxed);
    return;
  }
  TakeSample(state, now, when, calls);
}

}  // namespace

void SampleUsage(ThreadState& state, uint64_t now, uint64_t min_us) {
  // Another thread may have stored a later one since: then none is due.
  const uint64_t last = g_last_sample.load(std::memory_order_relaxed);
  if (static_cast<int64_t>(now - last) < static_cast<int64_t>(min_us * g_clock.ticks_per_us()))
    return;
  const bool sparse = min_us == kSampleUs && g_process.config.sample_bytes != 0;
  if (sparse && now - last < kSparseSampleUs * g_clock.ticks_per_us()) return;
  SampleAfter(last, state, now, sparse ? UsageWhen::kIfSparse : UsageWhen::kIfCheap);
}

void SampleUsageNow(ThreadState& state) {
  SampleAfter(g_last_sample.load(std::memory_order_relaxed), state, g_clock.Now(), UsageWhen::kNow);
}

void SampleUsageWithin(ThreadState& state, const SignalsBlocked& calls) {
  const uint64_t now = g_clock.Now();
  if (TakeTurn(g_last_sample.load(std::memory_order_relaxed), now))
    TakeSample(state, now, UsageWhen::kNow, calls);
}

uint64_t ResidentBytes() {
  // For a thread that has ended all numbers are 0.
  const long resident = ReadOwnProc("statm", [](const char* path) {
    char text[128];
    const long bytes = sys::ReadFile(path, text, sizeof(text));
    if (bytes <= 0) return 0L;
    std::string_view rest(text, static_cast<size_t>(bytes));
    TakeWord(rest);  // the size; the resident pages are the second word
    std::string_view pages = TakeWord(rest);
    return static_cast<long>(TakeNumber(pages, 10) * arch::kPageBytes);
  });
  return resident > 0 ? static_cast<uint64_t>(resident) : 0;
}

}  // namespace memtrace
