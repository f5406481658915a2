// EventBlock: the words of one block of events, read, checked and cut into spans: all of a
// block's work that needs no other block, so that any thread may do it ahead of time.
//
// A span is what lies between two time stamps (event_cursor.h).

#ifndef MEMTRACE_REPORT_TRACE_EVENT_BLOCK_H_
#define MEMTRACE_REPORT_TRACE_EVENT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "format/event_words.h"

namespace memtrace::report {

class BlockPayload;
class TraceReader;
struct BlockRef;
struct ThreadStream;

struct EventBlock {
  struct Span {
    uint32_t end;     // word index behind its last event
    uint32_t next;    // where the next span begins: behind the stamp
    uint32_t events;  // that take time
    uint64_t high;  // ns, the latest stamp of the block up to its end; UINT64_MAX: no end is known
    uint64_t ticks;   // the same in ticks
  };

  std::vector<uint64_t> words;
  std::vector<Span> spans;   // at least one, unless `status` is an error
  uint64_t begin_ns = 0;     // no event is earlier; 0: not known
  uint64_t begin_ticks = 0;
  absl::Status status;       // why there are no words
  size_t bad_word = SIZE_MAX;  // this one was no event: what followed was left out

  size_t held_bytes() const {
    return words.capacity() * sizeof(words[0]) + spans.capacity() * sizeof(spans[0]);
  }
};

// Paths, samples and growth are written in the course of another event.
inline bool TakesTime(uint64_t head) {
  const format::EventKind kind = format::KindOf(head);
  if (kind != format::EventKind::kExtended) return kind != format::EventKind::kPath;
  const format::ExtendedType type = format::ExtendedTypeOf(head);
  return type != format::ExtendedType::kUsage && type != format::ExtendedType::kHeapGrowth &&
         type != format::ExtendedType::kArenaGrowth;
}

// format::EventWords() without a jump that depends on the kind, for loops over billions of events.
inline uint32_t WordsOf(uint64_t head) {
  constexpr uint64_t kFixed = [] {  // four bits for each kind whose events have as many words
    uint64_t packed = 0;
    for (unsigned kind = 0; kind < 16; ++kind) {
      const auto each = static_cast<format::EventKind>(kind);
      if (each == format::EventKind::kPath || each == format::EventKind::kExtended) continue;
      packed |= uint64_t{format::EventWords(format::Head(each, 0))} << 4 * kind;
    }
    return packed;
  }();
  const format::EventKind kind = format::KindOf(head);
  const uint32_t fixed = kFixed >> 4 * static_cast<unsigned>(kind) & 0xf;
  if (fixed == 0) [[unlikely]] return format::EventWords(head);
  return kind == format::EventKind::kFree ? fixed + (format::DetailOf(head) & 1) : fixed;
}

// Fills `block`, whose buffers are used again. Notes no damage: TraceReader::NoteOutcome().
// Threads: any number at once, each with a payload of its own.
void ReadEventBlock(const TraceReader& reader, const ThreadStream& stream, const BlockRef& ref,
                    BlockPayload* payload, EventBlock* block);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EVENT_BLOCK_H_
