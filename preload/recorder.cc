#include "preload/recorder.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "preload/allocator_bracket.h"
#include "preload/extended_event.h"
#include "preload/leak_scan/program_mappings.h"
#include "preload/lifecycle.h"
#include "preload/nested_section.h"
#include "preload/recording_switch.h"
#include "preload/sampled_set.h"
#include "preload/sampler.h"
#include "preload/usage_samples.h"

namespace memtrace {
namespace {

// A time word at most every 16 events where blocks do not change hands: rdtsc costs as much
// as the rest of a free.
constexpr uint32_t kLongestStride = 16;
// A thread that goes this long between events stamps each of them, so that an
// event is placed exactly and not somewhere in a pause.
constexpr uint64_t kSlowUs = 50;

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

// Notes a block that a sampling process records, so that its free is recorded too.
// False: there is no room.
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

// There is no state for the thread, which was in `mode` before. Others may have theirs, and this
// one later. But one that had a state, in the parent of a fork, may be in the midst of a call of
// which that was the first half: then no section must open, and the mode cannot say so.
void MissFirstEvent(ThreadMode mode) {
  CountMissedEvent();
  if (mode == ThreadMode::kRecording || mode == ThreadMode::kOff) {
    StopRecording(format::RecordingStop::kNoMemory, ENOMEM);
  }
}

// The mode of a thread that did not get the section that it asked for, and was in `mode` before.
// The child of a fork that is not traced, or whose trace could not be begun, has no state any more:
// kRecording would promise one.
ThreadMode ModeWithoutSection(ThreadMode mode) {
  if (mode != ThreadMode::kRecording) return mode;
  if (IsOffForGood()) return ThreadMode::kOff;
  return t_slot.state == nullptr ? ThreadMode::kNew : mode;
}

}  // namespace

Section::Section(uintptr_t top) : mode_(t_slot.mode) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (IsInside(mode_)) {
    state_ = OpenNestedSection(top != 0 ? top : frame, &mode_);
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
  const bool as_before = Sampling() || mode_ == ThreadMode::kInAllocator;
  t_slot.mode = as_before ? mode_ : ThreadMode::kRecording;
}

ThreadState* RecordingSection::Resume() {
  if (Stopped() || EnsureRecording()) {
    if (t_slot.state == nullptr && AttachThread() == nullptr)
      MissFirstEvent(ThreadMode::kRecording);
    if (t_slot.state != nullptr && !Stopped()) return t_slot.state;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_slot.mode = ModeWithoutSection(ThreadMode::kRecording);
  return nullptr;
}

bool PrepareAlloc(size_t bytes, const CallSite& site) {
  switch (t_slot.mode) {
    case ThreadMode::kRecording:
      return true;
    case ThreadMode::kSampling: {
      // The call that reached it may have been another one, which was interrupted before it drew,
      // or jumped out of.
      const bool was_reached = static_cast<int64_t>(t_slot.until_sample + bytes) <= 0;
      t_slot.until_sample = DrawDistance(&t_slot.random, g_process.config.sample_bytes);
      if (!was_reached) return true;
      if (!TakeBytes(t_slot.until_sample, bytes)) return false;
      t_slot.until_sample = DrawDistance(&t_slot.random, g_process.config.sample_bytes);
      return true;
    }
    case ThreadMode::kInAllocator:
    case ThreadMode::kInside: {
      if (IsAllocatorsOwnAlloc(site)) return false;
      if (t_slot.mode == ThreadMode::kNew) return PrepareAlloc(bytes, site);
      if (!Sampling()) return true;
      // A draw of its own: what was interrupted may be in the midst of the thread's.
      uint64_t until = DrawDistance(&t_slot.random, g_process.config.sample_bytes);
      return TakeBytes(until, bytes);
    }
    case ThreadMode::kOwnCalls:
      return false;
    case ThreadMode::kNew:
    case ThreadMode::kOff:
      if (IsOffForGood()) return false;
      break;
  }
  if (!Sampling() || g_switch.recording.load(std::memory_order_relaxed) == 0) {
    const Section section;
    if (!section) return false;
  }
  if (!Sampling()) return true;
  BeginSampling();
  return TakeBytes(t_slot.until_sample, bytes) && PrepareAlloc(bytes, site);
}

bool PrepareFree(const void* block, const CallSite& site) {
  if (!Sampling()) {
    if (t_slot.mode == ThreadMode::kRecording) return true;
    if (t_slot.mode >= ThreadMode::kInAllocator) return !IsAllocatorsOwnFree(block, site);
    if (IsOffForGood()) return false;
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

// A section of the recording was not to be had, most often because the program has stopped it. It
// may have started it since: the event belongs into the trace either way.
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
  if (block != nullptr && g_process.allocator_is_glibc && GlibcChunk(block).other_arena()) {
    CheckArena(state, block, slot);
  }
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
