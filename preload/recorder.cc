#include "preload/recorder.h"

#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "preload/allowed_calls.h"
#include "preload/extended_event.h"
#include "preload/faults/faults.h"
#include "preload/faults/page_snapshot.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/leak_scan/program_mappings.h"
#include "preload/leak_scan/scan_copy.h"
#include "preload/nested_section.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/pace.h"
#include "preload/sampled_set.h"
#include "preload/sampler.h"
#include "preload/scan_hints.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// A time word at most every 16 events where blocks do not change hands: rdtsc costs as much
// as the rest of a free.
constexpr uint32_t kLongestStride = 16;
// A thread that goes this long between events stamps each of them, so that an
// event is placed exactly and not somewhere in a pause.
constexpr uint64_t kSlowUs = 50;
// Usage samples: getrusage costs 0.6 us, /proc/self/statm 3 us more.
constexpr uint64_t kSampleUs = 1'000;
constexpr uint64_t kResidentUs = 10'000;
// Where allocations are sampled the events themselves are about a millisecond apart, and a usage
// sample with each would cost a third of what the event does.
constexpr uint64_t kSparseSampleUs = 10'000;
constexpr uint64_t kSparseResidentUs = 50'000;
// A call of the kernel anyway (a mapping): a sample is cheap beside it.
constexpr uint64_t kMappingSampleUs = 100;

constinit std::atomic<uint64_t> g_last_sample{0};
constinit std::atomic<uint64_t> g_last_resident{0};
constinit Pace g_usage_pace;

// By a pace of their own: those that come as the program goes on. kIfSparse: with few events.
enum class UsageWhen { kIfSparse, kIfCheap, kNow };
void SampleUsage(ThreadState& state, uint64_t now, uint64_t min_us);

void MappingEvent(ThreadState& state) {
  SampleUsage(state, g_clock.Now(), kMappingSampleUs);
  state.events_to_stamp = 1;
  BeginEvent(state, 0, kLargestEventWords);
}

}  // namespace

void Stamp(ThreadState& state, uintptr_t address) {
  uint64_t now = 0;
  state.sharing = g_switch.sharing.load(std::memory_order_relaxed);
  if (state.sharing == 0) {
    now = g_clock.Now();
    // Still alone, after that? Adding 0 makes the load wait for the clock.
    auto sharing_at = reinterpret_cast<uintptr_t>(&g_switch.sharing) + (now >> 63);
    asm("" : "+r"(sharing_at));
    state.sharing = reinterpret_cast<std::atomic<uintptr_t>*>(sharing_at)->load(
        std::memory_order_acquire);
  }
  if (state.sharing != 0) {
    now = address == 0
              ? g_clock.OrderedNow()
              : BlockOwners(reinterpret_cast<void*>(state.sharing & ~kEpochMask))
                    .Claim(address, state.tag);
  }
  Put(state, format::TimeWord(now));
  const uint32_t events =
      state.stamp_stride > state.events_to_stamp ? state.stamp_stride - state.events_to_stamp : 1;
  const uint64_t pause = (now - state.last_stamp) / events;
  state.last_stamp = now;
  if (pause > kSlowUs * g_clock.ticks_per_us()) {
    state.stamp_stride = 1;
  } else if (state.stamp_stride < kLongestStride) {
    state.stamp_stride *= 2;
  }
  state.events_to_stamp = state.stamp_stride;
  SampleUsage(state, now, kSampleUs);
}

#ifdef MEMTRACE_NUMBER_EVENTS
constinit std::atomic<uint64_t> g_event_number{1};
// At the very moment that counts: behind the stamp, before the real free or after the real
// allocation.
void NumberEvent(ThreadState& state) {
  constexpr auto kType = static_cast<format::ExtendedType>(0x7fff);
  PutExtended(state, kType, {g_event_number.fetch_add(1)});
}
#endif

uint64_t ResidentBytes() {
  // Of a thread that has ended all numbers are 0.
  const long resident = ReadOwnProc("statm", [](const char* path) {
    char text[128];
    const long bytes = sys::ReadFile(path, text, sizeof(text) - 1);
    if (bytes <= 0) return 0L;
    const char* p = text;
    const char* const end = text + bytes;
    while (p < end && *p != ' ') ++p;
    long pages = 0;
    for (++p; p < end && *p >= '0' && *p <= '9'; ++p) pages = pages * 10 + (*p - '0');
    return pages * 4096;
  });
  return resident > 0 ? static_cast<uint64_t>(resident) : 0;
}

namespace {

// One thread takes the sample; the others go on.
bool TakeTurn(uint64_t last, uint64_t now) {
  if (!g_last_sample.compare_exchange_strong(last, now, std::memory_order_relaxed)) return false;
  uintptr_t sharing = g_switch.sharing.load(std::memory_order_relaxed);
  if (sharing != 0) {
    const uintptr_t next = (sharing & ~kEpochMask) | ((sharing + 1) & kEpochMask);
    g_switch.sharing.compare_exchange_strong(sharing, next, std::memory_order_relaxed);
  }
  return true;
}

// In a frame of its own: a scan that TakeSample() begins looks at that one's, where old words may stand.
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
  if (calls && g_process.pid != sys::Getpid()) {  // a vfork child: its parent's turn is still to come
    g_last_sample.store(last, std::memory_order_relaxed);
    return;
  }
  TakeSample(state, now, when, calls);
}

// Unless one was taken less than `min_us` ago, or they cost too much.
void SampleUsage(ThreadState& state, uint64_t now, uint64_t min_us) {
  // Another thread may have stored a later one since: then none is due.
  const uint64_t last = g_last_sample.load(std::memory_order_relaxed);
  if (static_cast<int64_t>(now - last) < static_cast<int64_t>(min_us * g_clock.ticks_per_us())) return;
  const bool sparse = min_us == kSampleUs && g_process.config.sample_bytes != 0;
  if (sparse && now - last < kSparseSampleUs * g_clock.ticks_per_us()) return;
  SampleAfter(last, state, now, sparse ? UsageWhen::kIfSparse : UsageWhen::kIfCheap);
}

}  // namespace

void SampleUsageNow(ThreadState& state) {
  SampleAfter(g_last_sample.load(std::memory_order_relaxed), state, g_clock.Now(), UsageWhen::kNow);
}

void SampleUsageWithin(ThreadState& state, const SignalsBlocked& calls) {
  const uint64_t now = g_clock.Now();
  if (TakeTurn(g_last_sample.load(std::memory_order_relaxed), now)) TakeSample(state, now, UsageWhen::kNow, calls);
}

void RecordHeapGrowth(ThreadState& state, uintptr_t current_break, uint32_t slot) {
  uintptr_t before = g_process.seen_break.load(std::memory_order_relaxed);
  if (before == current_break ||
      !g_process.seen_break.compare_exchange_strong(before, current_break,
                                                    std::memory_order_relaxed)) {
    return;  // another thread saw it too and tells it
  }
  if (before == 0) before = g_process.first_break;  // libc's first move of the break
  if (before == current_break) return;
  if (!state.ring.HasRoom(kShortEventWords)) SpoolThread(state);
  PutExtended(state, format::ExtendedType::kHeapGrowth, {before, current_break, slot});
}

void RecordArenaGrowth(ThreadState& state, uintptr_t base, size_t bytes, uint32_t slot) {
  state.arena_base = base;
  state.arena_bytes = bytes;
  if (!g_process.arena_heaps.Update(base, bytes)) return;
  g_program_mappings.Forget(base, bytes);
  if (!state.ring.HasRoom(kShortEventWords)) SpoolThread(state);
  PutExtended(state, format::ExtendedType::kArenaGrowth, {base, bytes, slot});
}

void RecordWideAlloc(ThreadState& state, AllocFunction function, void* block, size_t bytes,
                     uint32_t slot, unsigned alignment_log2) {
  uint64_t flags = 0;
  size_t usable = 0;
  if (block != nullptr && !g_process.allocator_is_glibc) {
    g_heap_territory.Note(reinterpret_cast<uintptr_t>(block), bytes);
  }
  if (block != nullptr && g_process.allocator_is_glibc) {
    const GlibcChunk chunk(block);
    usable = chunk.usable();
    if (chunk.mapped()) {
      flags |= format::kWideMapped;
      g_program_mappings.Forget(reinterpret_cast<uintptr_t>(block), usable);
    }
    if (chunk.other_arena()) flags |= format::kWideOtherArena;
  }
  if (bytes >= kStampedBytes) state.events_to_stamp = 1;
  if (flags & format::kWideMapped) SampleUsage(state, g_clock.Now(), kMappingSampleUs);
  BeginEvent(state, reinterpret_cast<uintptr_t>(block));
  uint64_t* words = state.ring.next();
  words[0] = format::Head(EventKind::kWideAlloc, reinterpret_cast<uintptr_t>(block),
                          static_cast<uint32_t>(function));
  words[1] = slot | static_cast<uint64_t>(alignment_log2) << 32 | flags << 40;
  words[2] = bytes;
  words[3] = usable;
  state.ring.Commit(4);
}

namespace {

bool Sampling() { return g_process.config.sample_bytes != 0; }

uint32_t SlotOf(ThreadState& state, const CallSite& site) {
  return Stopped() ? format::kStoppedSlot : CaptureStack(state, site);
}

// Of what is recorded of a sampling process, its free shall be too.
bool Keep(const void* block) {
  if (!Sampling() || block == nullptr || g_sampled.Insert(block)) return true;
  CountMissedEvent();
  return false;
}

// The recorded events of a thread are far apart.
void StampIfSampling(ThreadState& state) {
  if (Sampling()) state.events_to_stamp = 1;
}

// Another thread or process than before has another part of the random numbers.
void BeginSampling() {
  const uint64_t stream = g_process.next_sample_stream.fetch_add(1, std::memory_order_relaxed);
  uint64_t seed = g_process.sample_seed + stream * 0xd1342543de82ef95;
  t_slot.random = NextRandom(&seed);
  t_slot.until_sample = DrawDistance(&t_slot.random, g_process.config.sample_bytes);
  t_slot.mode = ThreadMode::kSampling;
}

// There is no state for the thread, which was in `mode` before. Others may have theirs, and this one
// later. But one that had a state, in the parent of a fork, may be in the midst of a call
// of which that was the first half: then no section must open, and the mode cannot say so.
void MissFirstEvent(ThreadMode mode) {
  CountMissedEvent();
  if (mode == ThreadMode::kRecording) StopRecording(format::RecordingStop::kNoMemory, ENOMEM);
}

// Of a thread that has not got what it asked for, and was in `mode` before. The child of a fork
// that is not traced, or whose trace could not be begun, has no state any more: kRecording
// would promise one.
ThreadMode ModeWithoutSection(ThreadMode mode) {
  return mode == ThreadMode::kRecording && t_slot.state == nullptr ? ThreadMode::kNew : mode;
}

}  // namespace

Section::Section(uintptr_t top) : mode_(t_slot.mode) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (IsInside(mode_)) {
    state_ = OpenNestedSection(top != 0 ? top : frame);
    return;
  }
  t_slot.section_frame = frame;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_slot.mode = ThreadMode::kInside;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (g_switch.recording.load(std::memory_order_relaxed) != 0 || EnsureRecording()) {
    state_ = t_slot.state != nullptr ? t_slot.state : AttachThread();
    if (state_ != nullptr) return;
    MissFirstEvent(mode_);
  }
  t_slot.mode = ModeWithoutSection(mode_);
}

void Section::Leave() {
  OwnerMayEnd(state_);
  if (IsInside(mode_)) {
    CloseNestedSection(*state_);
    return;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_slot.mode = Sampling() ? mode_ : ThreadMode::kRecording;
}

ThreadState* RecordingSection::Resume() {
  if (Stopped() || EnsureRecording()) {
    if (t_slot.state == nullptr && AttachThread() == nullptr) MissFirstEvent(ThreadMode::kRecording);
    if (t_slot.state != nullptr && !Stopped()) return t_slot.state;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_slot.mode = ModeWithoutSection(ThreadMode::kRecording);
  return nullptr;
}

bool PrepareAlloc(size_t bytes) {
  switch (t_slot.mode) {
    case ThreadMode::kRecording:
      return true;
    case ThreadMode::kSampling:
      t_slot.until_sample = DrawDistance(&t_slot.random, g_process.config.sample_bytes);
      return true;
    case ThreadMode::kInside: {
      if (!Sampling()) return true;
      // A draw of its own: what was interrupted may be in the midst of the thread's.
      uint64_t until = DrawDistance(&t_slot.random, g_process.config.sample_bytes);
      return TakeBytes(until, bytes);
    }
    case ThreadMode::kOwnCalls:
      return false;
    case ThreadMode::kNew:
      break;
  }
  if (!Sampling() || g_switch.recording.load(std::memory_order_relaxed) == 0) {
    const Section section;
    if (!section) return false;
  }
  if (!Sampling()) return true;
  BeginSampling();
  return TakeBytes(t_slot.until_sample, bytes) && PrepareAlloc(bytes);
}

bool PrepareFree(const void* block) {
  if (!Sampling()) {
    if (t_slot.mode == ThreadMode::kRecording || IsInside(t_slot.mode)) return true;
    const Section section;  // which may begin the recording
    if (!section) return false;
  }
  return !Sampling() || g_sampled.Remove(block);
}

void RecordAllocInAnyMode(EventKind kind, AllocFunction function, void* block, size_t bytes,
                          const CallSite& site) {
  const Section section(site.cfa);
  if (!section || !Keep(block)) return;
  StampIfSampling(section.state());
  WriteAlloc(section.state(), kind, function, block, bytes, SlotOf(section.state(), site));
}

void RecordFreeInAnyMode(void* block, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  StampIfSampling(state);
  StampIfLarge(state, block);
  const auto address = reinterpret_cast<uintptr_t>(block);
  if (g_process.config.free_stacks && !Stopped()) {
    const uint32_t slot = CaptureStack(state, site);
    BeginEvent(state, address);
    Put(state, format::Head(EventKind::kFree, address, 1), slot);
    return;
  }
  BeginEvent(state, address);
  Put(state, format::Head(EventKind::kFree, address));
}

// A section of the recording was not to be had, most often because the program has stopped it. It may have started
// it since: the event belongs into the trace either way.
static bool IsRecordedInAnyMode() {
  return g_switch.recording.load(std::memory_order_relaxed) != 0 && t_slot.state != nullptr;
}

void RecordAllocWhileStopped(EventKind kind, AllocFunction function, void* block, size_t bytes,
                             const CallSite& site) {
  if (IsRecordedInAnyMode()) RecordAllocInAnyMode(kind, function, block, bytes, site);
}

void RecordFreeWhileStopped(void* block) {
  if (IsRecordedInAnyMode()) RecordFreeInAnyMode(block, {});
}

void RecordReallocIntentWhileStopped(void* block) {
  if (IsRecordedInAnyMode()) RecordReallocIntentInAnyMode(block);
}

void RecordReallocIntentInAnyMode(void* block) {
  const Section section;
  if (!section) return;
  StampIfSampling(section.state());
  StampIfLarge(section.state(), block);
  BeginEvent(section.state(), reinterpret_cast<uintptr_t>(block));
  Put(section.state(), format::Head(EventKind::kReallocIntent, reinterpret_cast<uintptr_t>(block)));
}

void KeepReallocated(void* block) { Keep(block); }

namespace {

void WriteAlignedAlloc(ThreadState& state, AllocFunction function, void* block, size_t bytes,
                       size_t alignment, const CallSite& site) {
  const uint32_t slot = SlotOf(state, site);
  const unsigned log2 = alignment == 0 ? 0 : static_cast<unsigned>(std::bit_width(alignment)) - 1;
  RecordWideAlloc(state, function, block, bytes, slot, log2);
  CheckBreak(state, slot);
}

}  // namespace

void RecordAlignedAlloc(AllocFunction function, void* block, size_t bytes, size_t alignment,
                        const CallSite& site) {
  {
    const RecordingSection section;
    if (section) {
      WriteAlignedAlloc(section.state(), function, block, bytes, alignment, site);
      return;
    }
  }
  if (IsRecordedInAnyMode()) RecordAlignedAllocInAnyMode(function, block, bytes, alignment, site);
}

void RecordAlignedAllocInAnyMode(AllocFunction function, void* block, size_t bytes,
                                 size_t alignment, const CallSite& site) {
  const Section section(site.cfa);
  if (!section || !Keep(block)) return;
  StampIfSampling(section.state());
  WriteAlignedAlloc(section.state(), function, block, bytes, alignment, site);
}

namespace {

void ForgetMappings(uintptr_t begin, size_t bytes) {
  g_program_mappings.Forget(begin, bytes);
  g_allocator_mappings.Forget(begin, bytes);
}

}  // namespace

void RecordMmap(void* address, size_t length, int prot, int flags, int fd, uint64_t offset,
                const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  g_program_mappings.NoteMmap(begin, length, flags);
  if (site.pc - g_process.other_allocator.begin < g_process.other_allocator.bytes) {
    g_allocator_mappings.NoteMmap(begin, length, flags);
  } else {
    g_allocator_mappings.Forget(begin, length);
  }
  ThreadState& state = section.state();
  const uint32_t slot = CaptureStack(state, site);
  MappingEvent(state);
  // The captured stack is in the ring by now: its buffer is free for the name,
  // and the program's stack may be small.
  char* const name = reinterpret_cast<char*>(state.keys);
  static_assert(sizeof(state.keys) >= 4096);
  long name_bytes = 0;
  const OtherCalls calls;
  if (calls && fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    Text<16> file;
    file << "fd/" << fd;
    name_bytes = ReadOwnProc(file.view(), [&](const char* path) { return sys::Readlink(path, name, 4096); });
    if (name_bytes < 0) name_bytes = 0;
  }
  PutExtended(state, format::ExtendedType::kMmap,
              {reinterpret_cast<uintptr_t>(address), length,
               Pair(static_cast<uint32_t>(prot), static_cast<uint32_t>(flags)),
               Pair(static_cast<uint32_t>(fd), slot), offset},
              {name, static_cast<size_t>(name_bytes)});
}

void RecordMunmap(void* address, size_t length, const CallSite& site) {
  ForgetMappings(reinterpret_cast<uintptr_t>(address), length);
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = CaptureStack(state, site);
  MappingEvent(state);
  PutExtended(state, format::ExtendedType::kMunmap,
              {reinterpret_cast<uintptr_t>(address), length, slot});
}

void RecordMunmapFailed(void* address, size_t length) {
  const Section section;
  if (!section) return;
  section.state().events_to_stamp = 1;
  BeginEvent(section.state(), 0);
  PutExtended(section.state(), format::ExtendedType::kMunmapFailed,
              {reinterpret_cast<uintptr_t>(address), length});
}

void RecordMremap(void* old_address, size_t old_length, void* address, size_t length, int flags,
                  const CallSite& site) {
  ForgetMappings(reinterpret_cast<uintptr_t>(old_address), old_length);
  ForgetMappings(reinterpret_cast<uintptr_t>(address), length);
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = CaptureStack(state, site);
  MappingEvent(state);
  PutExtended(state, format::ExtendedType::kMremap,
              {reinterpret_cast<uintptr_t>(old_address), old_length,
               reinterpret_cast<uintptr_t>(address), length,
               Pair(static_cast<uint32_t>(flags), slot)});
}

void RecordBreak(uintptr_t old_break, uintptr_t new_break, const CallSite& site) {
  g_scan_hints.MoveBreak(old_break, new_break);
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = CaptureStack(state, site);
  MappingEvent(state);
  // Growth by libc's allocator since the last event comes first.
  RecordHeapGrowth(state, old_break, slot);
  g_process.seen_break.store(new_break, std::memory_order_relaxed);
  PutExtended(state, format::ExtendedType::kBrk, {old_break, new_break, slot});
}

void RecordShmat(void* address, size_t length, int shmid, int flags, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = CaptureStack(state, site);
  MappingEvent(state);
  PutExtended(state, format::ExtendedType::kShmat,
              {reinterpret_cast<uintptr_t>(address), length,
               Pair(static_cast<uint32_t>(shmid), static_cast<uint32_t>(flags)), slot});
}

void RecordShmdt(const void* address, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = CaptureStack(state, site);
  MappingEvent(state);
  PutExtended(state, format::ExtendedType::kShmdt,
              {reinterpret_cast<uintptr_t>(address), slot});
}

void RecordThreadName(const char* name) {
  if (t_slot.mode == ThreadMode::kNew) return;
  const Section section;
  if (!section) return;
  ThreadState& state = section.state();
  const size_t bytes = strnlen(name, sizeof(state.name) - 1);
  if (bytes == 0) return;
  memset(state.name, 0, sizeof(state.name));
  memcpy(state.name, name, bytes);
  uint64_t words[2];
  static_assert(sizeof(words) == sizeof(state.name));
  memcpy(words, state.name, sizeof(words));
  BeginEvent(state, 0);
  PutExtended(state, format::ExtendedType::kThreadName, words);
}

}  // namespace memtrace
