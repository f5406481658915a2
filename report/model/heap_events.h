// From an event's words to the heap model: the one switch over the hot kinds,
// shared by everything that follows the heap in order.

#ifndef MEMTRACE_REPORT_MODEL_HEAP_EVENTS_H_
#define MEMTRACE_REPORT_MODEL_HEAP_EVENTS_H_

#include "report/model/heap_model.h"
#include "report/model/stream_state.h"
#include "report/trace/event_cursor.h"
#include "report/trace/event_decoder.h"

namespace memtrace::report {

// An event that allocates or frees; a realloc's intent does not count as one.
inline bool IsHeapEvent(format::EventKind kind) {
  return kind == format::EventKind::kMalloc || kind == format::EventKind::kFree ||
         kind == format::EventKind::kCalloc || kind == format::EventKind::kRealloc ||
         kind == format::EventKind::kWideAlloc;
}

// Gives the event to the model. False: not yet. Kinds that the heap does not know
// of are taken and ignored.
inline bool ApplyHeapEvent(HeapModel& model, StreamState& state, StackTable* stacks, size_t stream,
                           const uint64_t* words, const EventTime& when, bool force,
                           WaitList& waits) {
  using format::EventKind;
  const EventKind kind = format::KindOf(words[0]);
  if (kind == EventKind::kFree) {  // half of all
    if ((format::DetailOf(words[0]) & 1) != 0) [[unlikely]] {
      const auto slot = static_cast<uint32_t>(words[1]);
      return model.FreeWithStack(stream, format::AddressOf(words[0]),
                                 state.StackOf(slot, stacks), when, force, waits);
    }
    return model.Free(stream, format::AddressOf(words[0]), when, force, waits);
  }
  switch (kind) {
    case EventKind::kMalloc:
    case EventKind::kCalloc:
    case EventKind::kRealloc: {
      const AllocEvent e = DecodeShortAlloc(words);
      const bool stopped = e.slot == format::kStoppedSlot;
      const HeapAlloc alloc{e.function, e.address, e.size, e.waste,
                            stopped ? StackId{} : state.StackOf(e.slot, stacks), false, stopped};
      return kind == EventKind::kRealloc ? model.ReallocResult(stream, alloc, when, force, waits)
                                         : model.Alloc(stream, alloc, when, force, waits);
    }
    case EventKind::kReallocIntent:
      return model.ReallocIntent(stream, format::AddressOf(words[0]), when, force, waits);
    case EventKind::kWideAlloc: {
      const AllocEvent e = DecodeWideAlloc(words);
      const bool stopped = e.slot == format::kStoppedSlot;
      const HeapAlloc alloc{e.function, e.address, e.size, e.waste,
                            stopped ? StackId{} : state.StackOf(e.slot, stacks), e.mapped,
                            stopped};
      return IsRealloc(e.function) ? model.ReallocResult(stream, alloc, when, force, waits)
                                   : model.Alloc(stream, alloc, when, force, waits);
    }
    case EventKind::kFree:
    case EventKind::kPath:
    case EventKind::kTime:
    case EventKind::kExtended:
    case EventKind::kInvalid:
      break;
  }
  return true;
}

inline bool ApplyHeapEvent(HeapModel& model, StreamState& state, StackTable* stacks, size_t stream,
                           const EventCursor& cursor, bool force, WaitList& waits) {
  return ApplyHeapEvent(model, state, stacks, stream, cursor.words(),
                        {cursor.time(), cursor.low(), cursor.high()}, force, waits);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_HEAP_EVENTS_H_
