#include "preload/thread_spool.h"

#include <algorithm>
#include <cstring>

#include "format/event_words.h"
#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/faults/faults.h"
#include "preload/kept_records.h"
#include "preload/lifecycle.h"
#include "preload/memory_map_record.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/spool_buffers.h"
#include "preload/sys.h"

namespace memtrace {

namespace {

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

void TellThread(const ThreadState& state) {
  AppendRecords<64>(
      [&](format::RecordEncoder& out) {
        EncodeThread(state, std::max(0, state.owner_tid.load(std::memory_order_relaxed)),
                     /*start=*/0, out);
      },
      TraceFile::Keep::kWhileNew);
}

int TidOfSelf() {
  const OtherCalls calls;
  return calls ? sys::Gettid() : ThreadState::kUnknownOwner;
}

// The disk was full, and has room again: records that were lost meanwhile, or may have been.
void TellRecordsAnew() {
  g_kept_records.TellAgain(g_process.file);
  const int self = TidOfSelf();
  ForEachThread([self](const ThreadState& state) {
    // One that this thread is about to take over is not its own yet.
    const bool taken_over =
        state.owner_tid.load(std::memory_order_relaxed) == self && !IsOfThisThread(&state);
    if (state.serial != 0 && !taken_over) TellThread(state);
  });
}

// Flight recorder: if blocks were given up since, `state` tells anew what its next blocks need, and
// the modules whose records are not kept for ever.
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
  if (IsOfThisThread(&state)) TellThread(state);  // else it is about to become another thread's
  g_kept_records.TellAgain(g_process.file);
}

// The owner may go on: the ring stays as it is, and what the owner should still write of it under
// the same number is longer, and counts. From a copy, where there is a buffer for it: words that
// change while they are written would be a damaged block.
void WriteRingOfOther(const EventRing& ring) {
  constexpr int kMostLooks = 100;  // at an owner that fills its ring again while it is copied
  static_assert(sizeof(SpoolBuffer::bytes) >= EventRing::kBytes);
  const BorrowedSpoolBuffer copy;
  EventRing::Content content = ring.content();
  const uint64_t* words = ring.begin();
  if (copy.get() != nullptr) {
    words = reinterpret_cast<const uint64_t*>(copy.get()->bytes);
    memcpy(copy.get()->bytes, ring.begin(), content.bytes);
    for (int looks = 1; !ring.StillHas(content); ++looks) {
      if (looks == kMostLooks) return;
      content = ring.content();  // the owner itself has written what was before
      memcpy(copy.get()->bytes, ring.begin(), content.bytes);
    }
  }
  if (content.bytes == 0) return;
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kEvents;
  header.thread = content.thread;
  header.sequence = content.sequence;
  header.dropped_events = content.dropped_events;
  header.flags = format::kBlockEarly;
  header.payload_bytes = header.content_bytes = content.bytes;
  if (g_process.file.Append(header, words)) return;
  g_process.file.status().NoteLoss(CountEvents(words, words + content.bytes / sizeof(*words)),
                                   g_clock.Now(), g_process.file.last_stop(),
                                   g_process.file.last_error());
}

}  // namespace

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

void ForgetStacks(ThreadState& state) {
  state.events_to_stamp = state.stamp_stride = 1;
  state.arena_base = 0;
  state.slots.Restart();
  state.join.Forget();
  state.memo.Forget();
  state.walked_size = 0;
}

void EncodeThread(const ThreadState& state, int tid, uint64_t start, format::RecordEncoder& out) {
  out.Begin(format::RecordTag::kThread);
  out.Number(state.serial);
  out.Number(static_cast<uint64_t>(tid));
  out.Number(start);
  out.Bytes({state.name, strnlen(state.name, sizeof(state.name))});
  out.Number(state.handlers_of);
  out.End();
}

void SpoolThread(ThreadState& state) {
  if (state.abandoned) [[unlikely]] {
    state.slots.Restart();
    state.ring.Restart(state.serial, state.sequence, 0);
    state.ring.Open();
    if (t_slot.state == &state) {  // see AbandonThreads(): this event is lost
      CountMissedEvent();
      t_slot.state = nullptr;
    }
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
      if (why == format::RecordingStop::kMaxBytes || why == format::RecordingStop::kSandboxed ||
          why == format::RecordingStop::kReserveUsedUp) {
        StopRecording(why, 0);
      }
    }
  }
  state.ring.Restart(state.serial, state.sequence, state.dropped_events);
  state.ring.set_clock(g_clock.Now(), g_clock.MonotonicNs());
  if (file.keeps_newest()) KeepUp(state);
}

void WritePrivateRings(const ThreadState* current) {
  if (g_process.private_rings.load(std::memory_order_relaxed) == 0) return;
  ForEachThread([current](ThreadState& state) {
    if (!state.ring_is_private || !state.ring.attached()) return;
    if (&state == current) {
      SpoolThread(state);
      return;
    }
    WriteRingOfOther(state.ring);
  });
}

void AskForNewStacks() {
  ForEachThread([](ThreadState& state) {
    state.ring.AskToSpool();
    state.slots.AskToRestart();
  });
}

}  // namespace memtrace
