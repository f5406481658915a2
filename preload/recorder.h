// Recorder: from an interposed call to words in the thread's ring.
//
// Everything here is on the event path: no lock, no allocation, no system call
// but in the parts named slow (a ring that is full, a stamp that is due for a
// usage sample, a thread or process seen for the first time), for the name of a
// file that is mapped, and for a look at stack memory that may not be readable
// (unwind/stack_bounds.h). errno is never touched: of libc only memcpy and its
// kin are called.
//
// An event is written in this order, so that SIGKILL at any point leaves whole
// events only:
//   node definitions; room for the largest event, else spool; a time word if due, or if
//   the block changed hands (block_owners.h); the event's words; commit.

#ifndef MEMTRACE_PRELOAD_RECORDER_H_
#define MEMTRACE_PRELOAD_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/event_words.h"
#include "preload/block_owners.h"
#include "preload/clock.h"
#include "preload/leak_scan/heap_territory.h"
#include "preload/process.h"
#include "preload/recording_switch.h"
#include "preload/thread_spool.h"
#include "preload/thread_state.h"

namespace memtrace {

using format::AllocFunction;
using format::EventKind;
using unwind::CallSite;

// Inside the tracer: between construction and destruction, this thread's state is in
// use. Not a lock: a signal handler that interrupts us and finds it so has a state of its
// own, in a section of its own (nested_section.h).
//
// False when nothing is to be recorded.
class Section {
 public:
  // `top`: the caller's stack pointer, where it is known.
  explicit Section(uintptr_t top = 0);
  ~Section() {
    if (state_ != nullptr) Leave();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  explicit operator bool() const { return state_ != nullptr; }
  ThreadState& state() const { return *state_; }

 private:
  void Leave();

  ThreadState* state_ = nullptr;
  ThreadMode mode_;  // before
};

// The program has stopped the recording (memtrace_stop()): blocks are told without their
// stacks, as slot kStoppedSlot.
inline bool Stopped() {
  return g_switch.recording.load(std::memory_order_relaxed) == kRecordStopped;
}

// The same as Section where the thread is known to be in ThreadMode::kRecording. False while
// the recording is stopped, too.
class RecordingSection {
 public:
  RecordingSection() {
    t_slot.section_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_slot.mode = ThreadMode::kInside;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (g_switch.recording.load(std::memory_order_relaxed) == kRecordAll) [[likely]] {
      state_ = t_slot.state;
      if (state_ != nullptr) [[likely]] return;
    }
    state_ = Resume();
  }
  ~RecordingSection() {
    if (state_ != nullptr) Leave();
  }
  RecordingSection(const RecordingSection&) = delete;
  RecordingSection& operator=(const RecordingSection&) = delete;

  explicit operator bool() const { return state_ != nullptr; }
  ThreadState& state() const { return *state_; }

 private:
  static void Leave() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_slot.mode = ThreadMode::kRecording;
  }
  // The first event of a fork child, or of the thread that it was forked by; or nothing is recorded,
  // or stopped: null, and the thread has left.
  [[gnu::cold]] static ThreadState* Resume();

  ThreadState* state_;
};

// The calls of a thread in another mode, before the real call: whether it is to be an
// event. The thread may come back in a mode of its own. `bytes` were taken off
// ThreadSlot::until_sample before, which said that they are sampled. `site`: that of the exported
// function.
bool PrepareAlloc(size_t bytes, const CallSite& site);
bool PrepareFree(const void* block, const CallSite& site);

// What every short event needs: its words, time words, a usage sample, heap growth.
inline constexpr size_t kShortEventWords = 32;
// The most words an event takes besides its stack's node definitions: for a mapping
// with a file name of 4096 bytes.
inline constexpr size_t kLargestEventWords = kShortEventWords + 4096 / 8;

// Slow: a time word, for an event of `address` (0: of none). Adapts the stride and takes a
// usage sample at times.
void Stamp(ThreadState& state, uintptr_t address);

// The slot of the stack of `site`, defining the nodes that are new.
uint32_t CaptureStack(ThreadState& state, const CallSite& site);

// Slow: libc's allocator moved the program break, or made an arena's heap larger.
void RecordHeapGrowth(ThreadState& state, uintptr_t current_break, uint32_t slot);
void RecordArenaGrowth(ThreadState& state, uintptr_t base, size_t bytes, uint32_t slot);

// Before the real call, in ThreadMode::kRecording: what CaptureStack() will look at first
// comes into the cache while the allocator works. Changes nothing that is recorded. No state: the
// first half of a realloc, or a signal handler, found that this is the child of a
// fork that is not traced.
inline void PrepareStack(const CallSite& site) {
  ThreadState* const state = t_slot.state;
  if (state == nullptr) [[unlikely]] return;
  state->memo.Prepare(site, state->unwinder.primary_stack());
}

inline void Put(ThreadState& state, uint64_t a) {
  state.ring.next()[0] = a;
  state.ring.Commit(1);
}
inline void Put(ThreadState& state, uint64_t a, uint64_t b) {
  uint64_t* words = state.ring.next();
  words[0] = a;
  words[1] = b;
  state.ring.Commit(2);
}

// The number of an event among those of all threads, for a build that only tests have: what
// the reader's order is compared with.
#ifdef MEMTRACE_NUMBER_EVENTS
void NumberEvent(ThreadState& state);
#else
inline void NumberEvent(ThreadState&) {}
#endif

// `address`: of the block; 0 for none.
inline void BeginEvent(ThreadState& state, uintptr_t address, size_t words = kShortEventWords) {
  if (!state.ring.HasRoom(words)) [[unlikely]] SpoolThread(state);
  const uintptr_t sharing = g_switch.sharing.load(std::memory_order_relaxed);
  if (--state.events_to_stamp == 0 || sharing != state.sharing) [[unlikely]] {
    Stamp(state, address);
  } else if (sharing != 0 &&
             !BlockOwners(reinterpret_cast<void*>(sharing & ~kEpochMask))
                  .IsOf(address, state.tag)) {
    Stamp(state, address);
  }
  NumberEvent(state);
}

// glibc's chunk header, one word before the block: size and three flags
// (malloc/malloc.c, "malloc_chunk details").
struct GlibcChunk {
  static constexpr size_t kMapped = 2, kOtherArena = 4, kFlags = 7;
  size_t word;

  explicit GlibcChunk(const void* block) : word(static_cast<const size_t*>(block)[-1]) {}
  bool mapped() const { return word & kMapped; }
  bool other_arena() const { return word & kOtherArena; }
  size_t usable() const { return (word & ~kFlags) - (mapped() ? 2 : 1) * sizeof(size_t); }
};

// glibc's heap_info at the start of an arena's heap (malloc/arena.c): arena,
// previous heap, size in use, size made accessible. Heaps are aligned to their
// largest size, 64 MiB with the default threshold.
inline constexpr uintptr_t kArenaHeapBytes = uintptr_t{64} << 20;
inline size_t ArenaHeapAccessibleBytes(uintptr_t heap) {
  return reinterpret_cast<const size_t*>(heap)[3];
}

extern "C" void* __curbrk;  // libc's idea of the program break

// Whether it is another than was told last. A break of earlier lies in the midst of a block later:
// in a register that a program does not use, or that the loader saves on its stack, it would be a
// pointer into that block and hide that the block is lost.
inline bool BreakHasMoved() { return arch::Differ(__curbrk, g_process.seen_break); }

inline void CheckBreak(ThreadState& state, uint32_t slot) {
  if (BreakHasMoved()) [[unlikely]] {
    RecordHeapGrowth(state, reinterpret_cast<uintptr_t>(__curbrk), slot);
  }
}

// `block` is of another arena than main's: whether its heap has grown.
inline void CheckArena(ThreadState& state, const void* block, uint32_t slot) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(block) & ~(kArenaHeapBytes - 1);
  const size_t accessible = ArenaHeapAccessibleBytes(base);
  if (base != state.arena_base || accessible != state.arena_bytes) [[unlikely]] {
    RecordArenaGrowth(state, base, accessible, slot);
  }
}

// Slow: in the long form, after the real call returned `block`.
void RecordWideAlloc(ThreadState& state, AllocFunction function, void* block, size_t bytes,
                     uint32_t slot, unsigned alignment_log2);

// The events of blocks from this size on have stamps of their own. An event without one lies
// somewhere between two, which in a thread that pauses among fast events may be a second: for the
// heap over time, and for whose a page fault was, that matters where the block is large, and there
// it costs nothing that could be measured beside the clearing of its pages.
inline constexpr size_t kStampedBytes = size_t{64} << 10;

// Before the event of the end of `block`. One with a mapping of its own is large, and lies behind
// the header at the begin of a page. It is not looked at: where it has been unmapped already, the
// event is to tell of that before the process ends by it. Of others one in 256 lies so, too.
inline void StampIfLarge(ThreadState& state, const void* block) {
  constexpr uintptr_t kChunkHeader = 16;
  if (!g_process.allocator_is_glibc) [[unlikely]] return;
  if (reinterpret_cast<uintptr_t>(block) % arch::kPageBytes == kChunkHeader ||
      GlibcChunk(block).word >= kStampedBytes) [[unlikely]] {
    state.events_to_stamp = 1;
  }
}

[[gnu::always_inline]] inline void WriteAlloc(ThreadState& state, EventKind kind,
                                              AllocFunction function, void* block, size_t bytes,
                                              uint32_t slot) {
  uint32_t detail = format::kUnknownWaste;
  bool wide = false;
  if (bytes >= kStampedBytes) [[unlikely]] {
    state.events_to_stamp = 1;
    wide = bytes >> 32 != 0;
  }
  if (block != nullptr && g_process.allocator_is_glibc) [[likely]] {
    const GlibcChunk chunk(block);
    wide |= chunk.mapped();
    const size_t waste = chunk.usable() - bytes;
    detail = waste < format::kUnknownWaste ? static_cast<uint32_t>(waste) : format::kUnknownWaste;
    if (chunk.other_arena()) {
      detail |= format::kOtherArena;
      CheckArena(state, block, slot);
    }
  } else if (block != nullptr) {
    g_heap_territory.Note(reinterpret_cast<uintptr_t>(block), bytes);
  }
  if (wide) [[unlikely]] {
    RecordWideAlloc(state, function, block, bytes, slot, 0);
  } else {
    BeginEvent(state, reinterpret_cast<uintptr_t>(block));
    Put(state, format::Head(kind, reinterpret_cast<uintptr_t>(block), detail),
        bytes | static_cast<uint64_t>(slot) << 32);
  }
  CheckBreak(state, slot);
}

// Slow: while the program has stopped the recording; or else nothing is recorded.
[[gnu::cold]] void RecordAllocWhileStopped(EventKind kind, AllocFunction function, void* block,
                                           size_t bytes, const CallSite& site);
[[gnu::cold]] void RecordFreeWhileStopped(void* block);
[[gnu::cold]] void RecordReallocIntentWhileStopped(void* block);

// malloc, calloc, realloc: after the real call returned `block`.
inline void RecordAlloc(EventKind kind, AllocFunction function, void* block, size_t bytes,
                        const CallSite& site) {
  {
    const RecordingSection section;
    if (section) [[likely]] {
      ThreadState& state = section.state();
      WriteAlloc(state, kind, function, block, bytes, CaptureStack(state, site));
      return;
    }
  }
  RecordAllocWhileStopped(kind, function, block, bytes, site);
}

// Before the real free, where frees are recorded without their stacks. Inlined where the compiler
// would not: it is half of all events.
[[gnu::always_inline]] inline void RecordFree(void* block) {
  const RecordingSection section;
  if (!section) [[unlikely]] return RecordFreeWhileStopped(block);
  StampIfLarge(section.state(), block);
  BeginEvent(section.state(), reinterpret_cast<uintptr_t>(block));
  Put(section.state(), format::Head(EventKind::kFree, reinterpret_cast<uintptr_t>(block)));
}

// After the real free: the heap may have been trimmed. Cheap enough to look.
inline void NoticeTrim() {
  if (!BreakHasMoved()) [[likely]] return;
  const RecordingSection section;
  if (section) CheckBreak(section.state(), format::kNoSlot);
}

// Before the real realloc of a block.
inline void RecordReallocIntent(void* block) {
  const RecordingSection section;
  if (!section) [[unlikely]] return RecordReallocIntentWhileStopped(block);
  StampIfLarge(section.state(), block);
  BeginEvent(section.state(), reinterpret_cast<uintptr_t>(block));
  Put(section.state(), format::Head(EventKind::kReallocIntent, reinterpret_cast<uintptr_t>(block)));
}

// The same for a thread in any mode, after PrepareAlloc() or PrepareFree() said yes.
void RecordAllocInAnyMode(EventKind kind, AllocFunction function, void* block, size_t bytes,
                          const CallSite& site);
// With MEMTRACE_FREE_STACKS=on it records the stack of the free too.
void RecordFreeInAnyMode(void* block, const CallSite& site);
void RecordReallocIntentInAnyMode(void* block);
// The real realloc of `block` failed, after the intent: it is live still.
void KeepReallocated(void* block);

// The aligned functions, and reallocarray with `alignment` 0: after the real call.
void RecordAlignedAllocInAnyMode(AllocFunction function, void* block, size_t bytes,
                                 size_t alignment, const CallSite& site);
void RecordAlignedAlloc(AllocFunction function, void* block, size_t bytes, size_t alignment,
                        const CallSite& site);

// Mappings (mapping_events.cc): see ExtendedType for which come before and which after the call.
// RecordMunmap() says whether there is an event, which RecordMunmapFailed() may take back, or, as
// the first half of an mremap, RecordMremap() refer to: then `told`.
void RecordMmap(void* address, size_t length, int prot, int flags, int fd, uint64_t offset,
                const CallSite& site);
bool RecordMunmap(void* address, size_t length, const CallSite& site);
void RecordMunmapFailed(void* address, size_t length);
void RecordMremap(void* old_address, size_t old_length, bool told, void* address, size_t length,
                  int flags, const CallSite& site);
void RecordBreak(uintptr_t old_break, uintptr_t new_break, const CallSite& site);
void RecordShmat(void* address, size_t length, int shmid, int flags, const CallSite& site);
void RecordShmdt(const void* address, const CallSite& site);

// The calling thread's, at most 15 bytes. A thread without events has its name when it has
// its first.
void RecordThreadName(const char* name);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_RECORDER_H_
