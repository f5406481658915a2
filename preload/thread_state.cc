#include "preload/thread_state.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "format/event_words.h"
#include "preload/allowed_calls.h"
#include "preload/block_owners.h"
#include "preload/clock.h"
#include "preload/faults/faults.h"
#include "preload/memory_map_record.h"
#include "preload/module_map.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/spool_buffers.h"
#include "preload/sys.h"
#include "preload/unwind/rule_table.h"

namespace memtrace {

thread_local constinit ThreadSlot t_slot __attribute__((tls_model("initial-exec")));

namespace {

constinit std::atomic<ThreadState*> g_threads{nullptr};
constinit std::atomic<uint32_t> g_next_tag{1};
// The table of BlockOwners, once there was a second thread. A fork child keeps it: what is
// left in it of its parent's threads is as good as the tags of threads that have ended.
constinit std::atomic<void*> g_owners{nullptr};
// Where the next search for a dead thread's state begins.
constinit std::atomic<ThreadState*> g_search{nullptr};

// How many states a newcomer asks the kernel about, about 0.2 us each. A program
// that starts and ends threads all the time finds one at once; one with ten
// thousand live threads loses a microsecond a thread.
constexpr int kSearchLimit = 8;

// Stacks a thread keeps. Budget: 2 MiB for the process and 256 KiB a thread, of which
// the ring has 64 KiB and the join's record up to 70, for stacks of 512 frames; 160 KiB more where one was deeper.
constexpr size_t kMemoEntries = 256;         // 112 KiB, touched where used
constexpr size_t kFirstMemoEntries = 1024;   // 448 KiB

// From now on a thread tells when a block changed hands. False: there is no memory.
bool BeginSharing() {
  if (g_switch.sharing.load(std::memory_order_relaxed) != 0) return true;
  void* table = g_owners.load(std::memory_order_acquire);
  if (table == nullptr) {
    void* made = OwnMap(BlockOwners::kBytes, /*touch=*/false);
    if (made == nullptr) return false;
    if (g_owners.compare_exchange_strong(table, made, std::memory_order_acq_rel)) {
      table = made;
    } else {
      OwnUnmap(made, BlockOwners::kBytes);
    }
  }
  uintptr_t none = 0;
  g_switch.sharing.compare_exchange_strong(none, reinterpret_cast<uintptr_t>(table));
  return true;
}

// The owner of a state that was made by a vfork child, or another process that shares our
// memory, on behalf of whoever has its thread-local variables: we cannot tell when it is gone.
constexpr int kUnknownOwner = -1;

// Of the calling thread: its own, and those of its handlers.
bool IsMine(const ThreadState* state) {
  const ThreadState* mine = t_slot.state;
  while (mine != nullptr && mine != state) mine = mine->for_handlers;
  return mine != nullptr;
}

bool IsGone(const ThreadState* state, int tid, int self) {
  if (tid == kUnknownOwner) return false;
  if (tid == self) return !IsMine(state);  // the id was another thread's before
  return sys::Tgkill(g_process.pid, tid, 0) == -ESRCH;
}

// A state that nobody owns or whose thread is gone, now owned by `tid`. It has a ring, if
// `has_ring`.
ThreadState* TakeOver(int tid, int limit = kSearchLimit, bool has_ring = false) {
  ThreadState* state = g_search.load(std::memory_order_acquire);
  for (int i = 0; i < limit; ++i) {
    if (state == nullptr) state = g_threads.load(std::memory_order_acquire);
    if (state == nullptr) return nullptr;
    int owner = state->owner_tid.load(std::memory_order_acquire);
    if ((!has_ring || state->ring.attached()) && (owner == 0 || IsGone(state, owner, tid)) &&
        state->owner_tid.compare_exchange_strong(owner, tid, std::memory_order_acq_rel)) {
      g_search.store(state->next_state, std::memory_order_release);
      OwnerIsGone(state);
      return state;
    }
    state = state->next_state;
  }
  g_search.store(state, std::memory_order_release);
  return nullptr;
}

// Where the kernel may not be asked: a state whose thread had the same control block as this
// one has. Two threads that live have different ones.
constexpr int kNeighbourLimit = 4096;
ThreadState* TakeOverByControlBlock() {
  const uintptr_t self = arch::ThreadPointer();
  ThreadState* state = g_threads.load(std::memory_order_acquire);
  for (int i = 0; state != nullptr && i < kNeighbourLimit; ++i, state = state->next_state) {
    int owner = state->owner_tid.load(std::memory_order_acquire);
    const bool gone =
        state->owner_control_block.load(std::memory_order_relaxed) == self && !IsMine(state);
    if ((owner == 0 || gone) &&
        state->owner_tid.compare_exchange_strong(owner, kUnknownOwner, std::memory_order_acq_rel)) {
      OwnerIsGone(state);
      return state;
    }
  }
  return nullptr;
}

ThreadState* MakeState(int tid) {
  void* memory = OwnMap(sizeof(ThreadState), /*touch=*/false);
  if (memory == nullptr) return nullptr;
  auto* state = new (memory) ThreadState;
  // The first thread does most of the work of most programs.
  const bool first = FirstThread() == nullptr;
  const size_t memo_entries = first ? kFirstMemoEntries : kMemoEntries;
  const size_t memo_bytes = unwind::StackMemo::Bytes(memo_entries);
  void* memo = OwnMap(memo_bytes, /*touch=*/false);
  if (memo == nullptr) {
    OwnUnmap(memory, sizeof(ThreadState));
    return nullptr;
  }
  // Taken last: a thread that there is no memory for comes again with each event. States are as
  // many as threads lived at once: more than there are tags no machine has memory for.
  const uint32_t tag = g_next_tag.load(std::memory_order_relaxed) > BlockOwners::kMaxTag
                           ? 0
                           : g_next_tag.fetch_add(1, std::memory_order_relaxed);
  if (tag == 0 || tag > BlockOwners::kMaxTag) {
    OwnUnmap(memo, memo_bytes);
    OwnUnmap(memory, sizeof(ThreadState));
    return nullptr;
  }
  state->memo.Init(memo, memo_entries);
  state->tag = static_cast<BlockOwners::Tag>(tag);
  state->owner_tid.store(tid, std::memory_order_relaxed);
  ThreadState* head = g_threads.load(std::memory_order_relaxed);
  do state->next_state = head;
  while (!g_threads.compare_exchange_weak(head, state, std::memory_order_release,
                                          std::memory_order_relaxed));
  return state;
}

// With the first one, so that a killed program's trace says so as well.
void NotePrivateRing() {
  if (g_process.private_rings.fetch_add(1, std::memory_order_relaxed) != 0) return;
  AppendRecords<256>([](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kNote);
    out.Bytes("the newest events of some threads were in private memory, for want of space or of "
              "shared mappings in the trace's file system: if the process was killed, they are "
              "missing");
    out.End();
  });
}

bool GiveRing(ThreadState& state) {
  // The first thread does most of the work of most programs. A flight recorder has no room to
  // leave small rings behind.
  const bool large = state.serial == 1 || g_process.file.keeps_newest();
  const size_t bytes = large ? EventRing::kBytes : EventRing::kSmallBytes;
  void* mapping = g_process.file.AppendRing(bytes, state.serial);
  state.ring_is_private = mapping == nullptr;
  if (mapping == nullptr) {
    // Recording goes on without the promise that the last events survive SIGKILL.
    mapping = OwnMap(bytes, /*touch=*/true);
    if (mapping == nullptr) return false;
    NotePrivateRing();
  }
  state.ring.Attach(mapping, bytes, state.serial, state.sequence);
  return true;
}

// A small ring was filled, and its content is in the file: from now on a large one. The
// old one is passed over by readers, now because its block is there, then because it is
// nobody's; its place in the file stays empty.
void EnlargeRing(ThreadState& state) {
  const size_t bytes = state.ring.bytes();
  void* const small = state.ring.mapping();
  void* const mapping = g_process.file.AppendRing(EventRing::kBytes, state.serial);
  if (mapping == nullptr) return;
  state.ring.Attach(mapping, EventRing::kBytes, state.serial, state.sequence);
  EventRing::Disown(small);
  g_process.file.ReleaseRing(small, bytes);
  CountRingBytes(-static_cast<int64_t>(bytes));
}

size_t CountEvents(const uint64_t* word, const uint64_t* end) {
  size_t events = 0;
  while (word < end) {
    switch (format::KindOf(*word)) {
      case format::EventKind::kPath:
      case format::EventKind::kTime:
      case format::EventKind::kExtended:
      case format::EventKind::kReallocIntent:
        break;
      default:
        ++events;
    }
    const uint32_t words = format::EventWords(*word);
    if (words == 0) break;
    word += words;
  }
  return events;
}

// What of `ring` is to be written; `header` says how. Fewer bytes are fewer pages
// that the kernel has to find and to write back, which costs more than the coding.
const void* Compress(const EventRing& ring, SpoolBuffer& buffer, format::BlockHeader* header) {
  const size_t bytes = format::EncodeWords(ring.begin(), ring.used_bytes() / sizeof(uint64_t),
                                           buffer.table, buffer.bytes);
  if (bytes >= header->content_bytes) return ring.begin();
  header->codec = format::Codec::kWords;
  header->payload_bytes = static_cast<uint32_t>(bytes);
  return buffer.bytes;
}

// What is known of the trace and of the stack is known no more.
void ForgetStacks(ThreadState& state) {
  state.events_to_stamp = state.stamp_stride = 1;
  state.arena_base = 0;
  state.slots.Restart();
  state.join.Forget();
  state.memo.Forget();
  state.walked_size = 0;
}

void TellThread(const ThreadState& state) {
  const int tid = state.owner_tid.load(std::memory_order_relaxed);
  AppendRecords<64>(
      [&](format::RecordEncoder& out) {
        out.Begin(format::RecordTag::kThread);
        out.Number(state.serial);
        out.Number(static_cast<uint64_t>(tid == kUnknownOwner ? 0 : tid));
        out.Number(0);
        out.Bytes({state.name, strnlen(state.name, sizeof(state.name))});
        out.Number(state.handlers_of);
        out.End();
      },
      TraceFile::Keep::kWhileNew);
}

int TidOfSelf() {
  const OtherCalls calls;
  return calls ? sys::Gettid() : kUnknownOwner;
}

// The disk was full, and has room again: records that were lost meanwhile, perhaps.
void TellRecordsAnew() {
  WritePermanentModulesAgain();
  const int self = TidOfSelf();
  ForEachThread([self](const ThreadState& state) {
    // One that this thread is about to take over is not its own yet.
    const bool taken_over =
        state.owner_tid.load(std::memory_order_relaxed) == self && !IsMine(&state);
    if (state.serial != 0 && !taken_over) TellThread(state);
  });
}

// Flight recorder: if blocks were given up since, `state` tells anew what its next blocks need.
// First the requests are taken back, then it is looked whether there is something to do: who
// gives up blocks counts that first and asks second (both sides in one order).
void KeepUp(ThreadState& state) {
  state.ring.Open();
  if (state.slots.asked_to_restart()) state.slots.Restart();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t begun = g_process.file.segments_begun();
  if (begun == state.segments_begun) return;
  state.segments_begun = begun;
  state.slots.Restart();
  if (IsMine(&state)) TellThread(state);  // else it is about to become another thread's
}

}  // namespace

ThreadState* FirstThread() { return g_threads.load(std::memory_order_acquire); }

namespace {

// Where there is no memory for a further thread's state: a new thread mostly comes when another
// has ended, whose kernel task may be there a little longer, and until then its state is taken.
// All such threads of the process together wait a second at most.
ThreadState* AwaitTakeOver(int tid) {
  constexpr int kAllNaps = 1000, kNapsOfOne = 100, kAllStates = 4096;
  static constinit std::atomic<int> naps{0};
  const timespec nap = {0, 1'000'000};
  for (int i = 0; i < kNapsOfOne; ++i) {
    ThreadState* const state = TakeOver(tid, kAllStates, /*has_ring=*/true);
    if (state != nullptr) return state;
    if (naps.fetch_add(1, std::memory_order_relaxed) >= kAllNaps) break;
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&nap), 0);
  }
  return nullptr;
}

// `interrupted`: the new state is for the handlers of the thread that has it; null: for the
// thread itself.
ThreadState* Attach(const ThreadState* interrupted) {
  const OwnFaultsScope faults;
  const OtherCalls calls;
  const int tid = calls ? sys::Gettid() : kUnknownOwner;
  const int owner = calls && sys::Getpid() == g_process.pid ? tid : kUnknownOwner;
  ThreadState* state = calls ? TakeOver(owner) : TakeOverByControlBlock();
  if (state == nullptr) state = MakeState(owner);
  const uint32_t serial = g_process.next_serial.fetch_add(1, std::memory_order_relaxed);
  if (serial > 1 && !BeginSharing()) {
    if (state != nullptr) state->owner_tid.store(0, std::memory_order_release);
    return nullptr;
  }
  bool has_new_ring = false;
  if (state != nullptr && !state->ring.attached()) {
    state->serial = serial;
    state->sequence = 1;
    has_new_ring = GiveRing(*state);
    if (!has_new_ring) {
      state->serial = 0;
      state->owner_tid.store(0, std::memory_order_release);
      state = nullptr;
    }
  }
  if (state == nullptr && calls) state = AwaitTakeOver(owner);
  if (state == nullptr) return nullptr;
  uint32_t previous = 0;
  if (!has_new_ring) {
    state->ring.DropUncommitted();  // its owner may have ended in the midst of an event
    SpoolThread(*state);
    previous = state->serial;
  }
  state->owner_control_block.store(arch::ThreadPointer(), std::memory_order_relaxed);
  state->serial = serial;
  state->sequence = 1;
  state->dropped_events = 0;
  state->for_handlers = nullptr;
  state->handlers_of = 0;
  if (interrupted != nullptr) {
    state->handlers_of =
        interrupted->handlers_of != 0 ? interrupted->handlers_of : interrupted->serial;
  }
  state->in_use = false;
  state->unwinder.Reset();
  ForgetStacks(*state);
  if (!has_new_ring) state->ring.Restart(state->serial, 1, 0);
  const uint64_t now = g_clock.Now();
  state->ring.set_clock(now, g_clock.MonotonicNs());
  memset(state->name, 0, sizeof(state->name));
  if (calls) sys::GetThreadName(state->name);
  if (g_process.file.keeps_newest()) {
    state->ring.Open();
    if (state->slots.asked_to_restart()) state->slots.Restart();
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as in KeepUp()
    state->segments_begun = g_process.file.segments_begun();
  }
  const auto tell = [&](format::RecordEncoder& out) {
    if (previous != 0) {
      out.Begin(format::RecordTag::kThreadGone);
      out.Number(previous);
      out.Number(now);
      out.End();
    }
    out.Begin(format::RecordTag::kThread);
    out.Number(state->serial);
    out.Number(static_cast<uint64_t>(tid == kUnknownOwner ? 0 : tid));
    out.Number(now);
    out.Bytes({state->name, strnlen(state->name, sizeof(state->name))});
    out.Number(state->handlers_of);
    out.End();
  };
  AppendRecords<192>(tell, TraceFile::Keep::kWhileNew);
  return state;
}

}  // namespace

ThreadState* AttachThread() {
  const SignalsBlocked no_handler;
  // A handler that interrupted this thread on its way here may have been first.
  if (t_slot.state == nullptr) t_slot.state = Attach(nullptr);
  return t_slot.state;
}

ThreadState* AttachForHandlers(ThreadState& interrupted) {
  const SignalsBlocked no_handler;
  if (interrupted.for_handlers == nullptr) interrupted.for_handlers = Attach(&interrupted);
  return interrupted.for_handlers;
}

void RecoverThread(ThreadState& state) {
  if (state.ring.attached()) state.ring.DropUncommitted();
  ForgetStacks(state);
}

void SpoolThread(ThreadState& state) {
  if (state.abandoned) [[unlikely]] {
    state.slots.Restart();
    state.ring.Restart(state.serial, state.sequence, 0);
    state.ring.Open();
    return;
  }
  // A handler that forks, jumps or ends the thread would leave half of a block, or a block
  // that nobody knows of.
  const SignalsBlocked no_handler;
  TraceFile& file = g_process.file;
  if (!state.ring.empty() || state.dropped_events != 0) {
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kEvents;
    header.thread = state.serial;
    header.sequence = state.sequence;
    header.dropped_events = state.dropped_events;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(state.ring.used_bytes());
    const bool filled = state.ring.used_bytes() > state.ring.bytes() / 2;
    const void* payload = state.ring.begin();
    const BorrowedSpoolBuffer compressed;
    if (compressed.get() != nullptr) payload = Compress(state.ring, *compressed.get(), &header);
    if (file.Append(header, payload)) {
      ++state.sequence;
      state.dropped_events = 0;
      if (filled && state.ring.bytes() < EventRing::kBytes && !state.ring_is_private) {
        EnlargeRing(state);
      }
      DrainFaults(DrainWhen::kIfDue);
      WriteMemoryMapIfGrown();
      if (file.TakeLostRecords()) TellRecordsAnew();
    } else {
      const auto lost = static_cast<uint32_t>(CountEvents(state.ring.begin(), state.ring.next()));
      state.dropped_events += lost;
      file.status().NoteLoss(lost, g_clock.Now(), file.last_stop(), file.last_error());
      state.slots.Restart();  // the definitions in this block never reached the reader
      const format::RecordingStop why = file.last_stop();
      if (why == format::RecordingStop::kMaxBytes || why == format::RecordingStop::kSandboxed) {
        StopRecording(why, 0);
      }
    }
  }
  state.ring.Restart(state.serial, state.sequence, state.dropped_events);
  state.ring.set_clock(g_clock.Now(), g_clock.MonotonicNs());
  if (file.keeps_newest()) KeepUp(state);
}

void AbandonThread(ThreadState& state) {
  state.abandoned = true;
  g_search.store(nullptr, std::memory_order_relaxed);
  ThreadState* each = FirstThread();
  if (each == &state) g_threads.store(state.next_state, std::memory_order_relaxed);
  for (; each != nullptr; each = each->next_state) {
    if (each->next_state == &state) each->next_state = state.next_state;
  }
}

void WritePrivateRings(ThreadState& current) {
  if (g_process.private_rings.load(std::memory_order_relaxed) == 0) return;
  ForEachThread([&current](ThreadState& state) {
    if (!state.ring_is_private || !state.ring.attached()) return;
    if (&state == &current) {
      SpoolThread(state);
      return;
    }
    // Its owner may go on: the ring stays as it is, and what the owner should still write of
    // it under the same number is longer, and counts.
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kEvents;
    header.thread = state.serial;
    header.sequence = state.sequence;
    header.dropped_events = state.dropped_events;
    header.flags = format::kBlockEarly;
    header.payload_bytes = header.content_bytes = state.ring.committed_bytes();
    if (header.payload_bytes == 0) return;
    const uint64_t* const begin = state.ring.begin();
    if (g_process.file.Append(header, begin)) return;
    g_process.file.status().NoteLoss(
        CountEvents(begin, begin + header.payload_bytes / sizeof(*begin)), g_clock.Now(),
        g_process.file.last_stop(), g_process.file.last_error());
  });
}

void AskForNewStacks() {
  ForEachThread([](ThreadState& state) {
    state.ring.AskToSpool();
    state.slots.AskToRestart();
  });
}

void ForgetThreads() {
  ReturnSpoolBuffersOfOtherThreads();
  unwind::RuleTable::ForgetGrowth();
  unwind::ForgetCloses();
  for (ThreadState* state = FirstThread(); state != nullptr; state = state->next_state) {
    if (state->ring.attached()) {
      if (state->ring_is_private) {
        OwnUnmap(state->ring.mapping(), state->ring.bytes());
      } else {
        CountRingBytes(-static_cast<int64_t>(state->ring.bytes()));
      }
      state->ring.Detach();
    }
    state->unwinder.ForgetCounters();  // what the parent counted is in its own trace
    state->serial = 0;
    state->for_handlers = nullptr;
    state->in_use = false;
    state->owner_tid.store(0, std::memory_order_relaxed);
  }
  t_slot.state = nullptr;
}

}  // namespace memtrace
