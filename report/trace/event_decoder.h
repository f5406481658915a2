// EventDecoder: the words of one event -> its fields. Every length is checked:
// an event that is shorter than its kind needs gives zeros, or nothing, for what
// it lacks; words that a newer writer added are ignored.
//
// The hot kinds are decoded by inline functions that the heap model's loop and the
// dump share; they rely on EventCursor having checked EventWords().

#ifndef MEMTRACE_REPORT_TRACE_EVENT_DECODER_H_
#define MEMTRACE_REPORT_TRACE_EVENT_DECODER_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "format/event_words.h"
#include "report/trace/record_text.h"

namespace memtrace::report {

// kMalloc, kCalloc, kRealloc, kWideAlloc.
struct AllocEvent {
  format::AllocFunction function;
  uint64_t address;
  uint64_t size;
  uint64_t waste;       // usable minus requested; 0 when not known
  uint32_t slot;
  uint32_t alignment_log2;  // 0: not aligned specially
  bool mapped;
  bool other_arena;
  bool waste_known;
};

inline AllocEvent DecodeShortAlloc(const uint64_t* words) {
  const uint32_t detail = format::DetailOf(words[0]);
  const uint32_t waste = detail & format::kUnknownWaste;
  const bool known = waste != format::kUnknownWaste;
  // kMalloc, kCalloc and kRealloc have the same numbers as their functions.
  return {static_cast<format::AllocFunction>(format::KindOf(words[0])),
          format::AddressOf(words[0]),
          words[1] & UINT32_MAX,
          known ? waste : 0,
          static_cast<uint32_t>(words[1] >> 32),
          0,
          false,
          (detail & format::kOtherArena) != 0,
          known};
}
static_assert(static_cast<int>(format::EventKind::kMalloc) ==
              static_cast<int>(format::AllocFunction::kMalloc));
static_assert(static_cast<int>(format::EventKind::kCalloc) ==
              static_cast<int>(format::AllocFunction::kCalloc));
static_assert(static_cast<int>(format::EventKind::kRealloc) ==
              static_cast<int>(format::AllocFunction::kRealloc));

inline AllocEvent DecodeWideAlloc(const uint64_t* words) {
  const uint64_t requested = words[2], usable = words[3];
  return {static_cast<format::AllocFunction>(format::DetailOf(words[0])),
          format::AddressOf(words[0]),
          requested,
          usable > requested ? usable - requested : 0,
          static_cast<uint32_t>(words[1]),
          static_cast<uint32_t>(words[1] >> 32 & 0xff),
          (words[1] >> 40 & format::kWideMapped) != 0,
          (words[1] >> 40 & format::kWideOtherArena) != 0,
          usable != 0};
}

inline bool IsRealloc(format::AllocFunction function) {
  return function == format::AllocFunction::kRealloc ||
         function == format::AllocFunction::kReallocarray;
}

// The fields of extended events. `words` is the head, `count` all words.
class ExtendedEvent {
 public:
  ExtendedEvent(const uint64_t* words, uint32_t count) : words_(words), count_(count) {}

  format::ExtendedType type() const { return format::ExtendedTypeOf(words_[0]); }
  // Word `i`, 1 the first after the head.
  uint64_t word(uint32_t i) const { return i < count_ ? words_[i] : 0; }
  uint32_t low(uint32_t i) const { return static_cast<uint32_t>(word(i)); }
  uint32_t high(uint32_t i) const { return static_cast<uint32_t>(word(i) >> 32); }
  // The NUL-padded text from word `i` to the end, cut where no path is longer. Points
  // into the words.
  std::string_view text(uint32_t i) const {
    if (i >= count_) return {};
    const std::string_view all(reinterpret_cast<const char*>(words_ + i),
                               size_t{count_ - i} * sizeof(uint64_t));
    return all.substr(0, std::min(all.find('\0'), kLongestText));
  }

  // The stack of mmap, munmap and so on; kNoSlot for types that have none.
  uint32_t slot() const;

 private:
  const uint64_t* words_;
  uint32_t count_;
};

const char* NameOf(format::AllocFunction function);  // "malloc"; nullptr for an unknown one
const char* NameOf(format::ExtendedType type);       // "mmap"; nullptr for an unknown one

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EVENT_DECODER_H_
