#include "preload/thread_state.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/block_owners.h"
#include "preload/clock.h"
#include "preload/faults/faults.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/recording_switch.h"
#include "preload/signals_blocked.h"
#include "preload/spool_buffers.h"
#include "preload/sys.h"
#include "preload/thread_spool.h"

namespace memtrace {

thread_local constinit ThreadSlot t_slot __attribute__((tls_model("initial-exec")));

namespace {

constinit std::atomic<ThreadState*> g_threads{nullptr};
constinit std::atomic<uint32_t> g_next_tag{1};
// The table of BlockOwners, once there was a second thread. A fork child keeps it: what is
// left in it of its parent's threads is as good as the tags of threads that have ended.
constinit std::atomic<void*> g_owners{nullptr};
// The state that is looked at next by whoever searches for a dead thread's; null: the first. Every
// look moves it on, so that those who search at once do not look at the same ones.
constinit std::atomic<ThreadState*> g_search{nullptr};

// How many states a newcomer asks the kernel about on average, about 0.2 us each. A program
// that starts and ends threads all the time finds one at once; one with ten thousand live
// threads loses a microsecond a thread. The states of threads that live long lie in a row, and
// searches that all ended within it would make states without end: so the looks that newcomers
// did not need lead those across that find only threads that live. Each is taken by itself: of
// several who search at once none has them all. For L of these there are then states of L / 7
// others, and of the few that begin and end at once, before all newcomers find one.
constexpr int kSearchLimit = 8;
constexpr int kMostSpareLooks = 1 << 16;
constinit std::atomic<int> g_spare_looks{0};

// Stacks a thread keeps. Budget: 2 MiB for the process and 256 KiB a thread, of which
// the ring has 64 KiB once it has filled 12, and the join's record up to 70, for stacks of 512
// frames; 160 KiB more where one was deeper.
constexpr size_t kMemoEntries = 256;         // 112 KiB, touched where used
constexpr size_t kFirstMemoEntries = 1024;   // 448 KiB

// From now on a thread tells when a block changed hands. False: there is no memory.
bool BeginSharing() {
  if (g_switch.sharing.load(std::memory_order_relaxed) != 0) return true;
  void* table = g_owners.load(std::memory_order_acquire);
  if (table == nullptr) {
    void* made = OwnMapAligned(BlockOwners::kBytes, kEpochs);
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

bool IsGone(const ThreadState* state, int tid, int self) {
  if (tid == ThreadState::kUnknownOwner) return false;
  if (tid == self) return !IsOfThisThread(state);  // the id was another thread's before
  return sys::Tgkill(g_process.pid, tid, 0) == -ESRCH;
}

// The state to look at now. Null: there is none at all.
ThreadState* NextToLookAt() {
  ThreadState* at = g_search.load(std::memory_order_acquire);
  for (;;) {
    ThreadState* const state = at != nullptr ? at : g_threads.load(std::memory_order_acquire);
    if (state == nullptr) return nullptr;
    if (g_search.compare_exchange_weak(at, state->next_state, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      return state;
    }
  }
}

// A state that nobody owns or whose thread is gone, now owned by `tid`. It has a ring, if
// `has_ring`. Looks at states while `may_look()`, and at no more than there are, or kSearchLimit.
template <typename MayLook>
ThreadState* TakeOver(int tid, bool has_ring, MayLook may_look) {
  const uint32_t states = g_next_tag.load(std::memory_order_relaxed);  // each has a tag of its own
  const uint32_t most = std::max(states, uint32_t{kSearchLimit});
  for (uint32_t looked = 0; looked < most && may_look(); ++looked) {
    ThreadState* const state = NextToLookAt();
    if (state == nullptr) return nullptr;
    int owner = state->owner_tid.load(std::memory_order_acquire);
    if ((!has_ring || state->ring.attached()) && (owner == 0 || IsGone(state, owner, tid)) &&
        state->owner_tid.compare_exchange_strong(owner, tid, std::memory_order_acq_rel)) {
      OwnerIsGone(state);
      return state;
    }
  }
  return nullptr;
}

bool TakeSpareLook() {
  int spare = g_spare_looks.load(std::memory_order_relaxed);
  while (spare > 0) {
    if (g_spare_looks.compare_exchange_weak(spare, spare - 1, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// The same for a newcomer, which has the spare looks of all before it besides its own.
ThreadState* TakeOver(int tid) {
  int own = kSearchLimit;
  ThreadState* const state = TakeOver(tid, /*has_ring=*/false, [&own] {
    if (own == 0) return TakeSpareLook();
    --own;
    return true;
  });
  if (own != 0 && g_spare_looks.load(std::memory_order_relaxed) < kMostSpareLooks) {
    g_spare_looks.fetch_add(own, std::memory_order_relaxed);
  }
  return state;
}

// Where the kernel may not be asked: a state whose thread had the same control block as this
// one has. Two threads that live have different ones.
constexpr int kNeighbourLimit = 4096;
ThreadState* TakeOverByControlBlock() {
  const uintptr_t self = arch::ThreadPointer();
  ThreadState* state = g_threads.load(std::memory_order_acquire);
  for (int i = 0; state != nullptr && i < kNeighbourLimit; ++i, state = state->next_state) {
    int owner = state->owner_tid.load(std::memory_order_acquire);
    const bool gone = state->owner_control_block.load(std::memory_order_relaxed) == self &&
                      !IsOfThisThread(state);
    if ((owner == 0 || gone) &&
        state->owner_tid.compare_exchange_strong(owner, ThreadState::kUnknownOwner,
                                                 std::memory_order_acq_rel)) {
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
  // Taken last: a thread that there is no memory for comes again with each event. States are a
  // little more than threads lived at once (kSearchLimit): more than there are tags no machine has
  // memory for.
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

// Where there is no memory for a further thread's state: a new thread mostly comes when another
// has ended, whose kernel task may be there a little longer, and until then its state is taken.
// All such threads of the process together wait a second at most.
ThreadState* AwaitTakeOver(int tid) {
  constexpr int kAllNaps = 1000, kNapsOfOne = 100, kAllStates = 4096;
  static constinit std::atomic<int> naps{0};
  const timespec nap = {0, 1'000'000};
  for (int i = 0; i < kNapsOfOne; ++i) {
    int looks = kAllStates;
    ThreadState* const state = TakeOver(tid, /*has_ring=*/true, [&looks] { return looks-- > 0; });
    if (state != nullptr) return state;
    if (naps.fetch_add(1, std::memory_order_relaxed) >= kAllNaps) break;
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&nap), 0);
  }
  return nullptr;
}

// A state that is `owner`'s now, with a ring for the thread `serial`. `*previous` is the thread
// whose state it was, and whose last events are in the file now; 0: nobody's. Null: there is no
// memory.
ThreadState* StateWithRing(const OtherCalls& calls, int owner, uint32_t serial,
                           uint32_t* previous) {
  ThreadState* state = calls ? TakeOver(owner) : TakeOverByControlBlock();
  if (state == nullptr) state = MakeState(owner);
  if (state != nullptr && !state->ring.attached()) {
    state->serial = serial;
    state->sequence = 1;
    if (GiveRing(*state)) return state;
    state->serial = 0;
    state->owner_tid.store(0, std::memory_order_release);
    state = nullptr;
  }
  if (state == nullptr && calls) state = AwaitTakeOver(owner);
  if (state == nullptr) return nullptr;
  state->ring.DropUncommitted();  // its owner may have ended in the midst of an event
  SpoolThread(*state);
  *previous = state->serial;
  return state;
}

// Of what an earlier owner did nothing is left.
void BeginLife(const OtherCalls& calls, ThreadState& state, uint32_t serial,
               const ThreadState* interrupted, uint64_t now) {
  state.owner_control_block.store(arch::ThreadPointer(), std::memory_order_relaxed);
  state.serial = serial;
  state.sequence = 1;
  state.dropped_events = 0;
  state.for_handlers = nullptr;
  state.handlers_of = 0;
  if (interrupted != nullptr) {
    state.handlers_of =
        interrupted->handlers_of != 0 ? interrupted->handlers_of : interrupted->serial;
  }
  state.in_use = false;
  state.unwinder.Reset();
  ForgetStacks(state);
  state.ring.Restart(serial, 1, 0);
  state.ring.set_clock(now, g_clock.MonotonicNs());
  memset(state.name, 0, sizeof(state.name));
  if (calls) sys::GetThreadName(state.name);
  if (!g_process.file.keeps_newest()) return;
  state.ring.Open();
  if (state.slots.asked_to_restart()) state.slots.Restart();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as in KeepUp()
  state.segments_begun = g_process.file.segments_begun();
}

// `interrupted`: the new state is for the handlers of the thread that has it; null: for the
// thread itself.
ThreadState* Attach(const ThreadState* interrupted) {
  const OwnFaultsScope faults;
  const OtherCalls calls;
  const int tid = calls ? sys::Gettid() : ThreadState::kUnknownOwner;
  const int owner = calls && sys::Getpid() == g_process.pid ? tid : ThreadState::kUnknownOwner;
  const uint32_t serial = g_process.next_serial.fetch_add(1, std::memory_order_relaxed);
  if (serial > 1 && !BeginSharing()) return nullptr;
  uint32_t previous = 0;
  ThreadState* const state = StateWithRing(calls, owner, serial, &previous);
  if (state == nullptr) return nullptr;
  const uint64_t now = g_clock.Now();
  BeginLife(calls, *state, serial, interrupted, now);
  const auto tell = [&](format::RecordEncoder& out) {
    if (previous != 0) {
      out.Begin(format::RecordTag::kThreadGone);
      out.Number(previous);
      out.Number(now);
      out.End();
    }
    EncodeThread(*state, std::max(0, tid), now, out);
  };
  AppendRecords<192>(tell, TraceFile::Keep::kWhileNew);
  return state;
}

}  // namespace

ThreadState* FirstThread() { return g_threads.load(std::memory_order_acquire); }

bool IsOfThisThread(const ThreadState* state) {
  const ThreadState* mine = t_slot.state;
  while (mine != nullptr && mine != state) mine = mine->for_handlers;
  return mine != nullptr;
}

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

void AbandonThread(ThreadState& state) {
  state.abandoned = true;
  g_search.store(nullptr, std::memory_order_relaxed);
  ThreadState* each = FirstThread();
  if (each == &state) g_threads.store(state.next_state, std::memory_order_relaxed);
  for (; each != nullptr; each = each->next_state) {
    if (each->next_state == &state) each->next_state = state.next_state;
  }
}

void ForgetParentsState() {
  // Begun by a handler of pthread_atfork(): then the state is of this process, unless it was another
  // thread, made by the handler.
  const bool begun = g_switch.recording.load(std::memory_order_relaxed) != 0;
  if (begun && t_slot.state != nullptr && !t_slot.state->abandoned) return;
  t_slot.state = nullptr;
  g_switch.fork_was_seen.store(1, std::memory_order_relaxed);
}

namespace {

// By another thread than the one that lives on in the child, which has not come back from a fork()
// of libc's: it is in a handler of pthread_atfork() yet, or the fork was a system call of the
// program's own. It has one of these states still, and does not know that it is in a child. So none
// of them is anybody else's from now on. Its next event, if it has one before it comes back, goes
// nowhere, and with that it finds out (SpoolThread()).
void AbandonThreads() {
  for (ThreadState* state = FirstThread(); state != nullptr; state = state->next_state) {
    state->abandoned = true;
    if (!state->ring.attached()) continue;
    if (!state->ring_is_private) CountRingBytes(-static_cast<int64_t>(state->ring.bytes()));
    void* const nowhere = OwnMap(EventRing::kSmallBytes, /*touch=*/false);
    if (nowhere == nullptr) continue;
    state->ring.Attach(nowhere, EventRing::kSmallBytes, 0, 1);
    state->ring.AskToSpool();
  }
  g_threads.store(nullptr, std::memory_order_release);
  g_search.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

void ForgetThreads() {
  ReturnSpoolBuffersOfOtherThreads();
  unwind::ForgetCloses();
  if (t_slot.state == nullptr && g_switch.fork_was_seen.load(std::memory_order_relaxed) == 0)
    return AbandonThreads();
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
