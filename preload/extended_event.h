// Writing extended events (format/event_words.h), with the room for them already there.

#ifndef MEMTRACE_PRELOAD_EXTENDED_EVENT_H_
#define MEMTRACE_PRELOAD_EXTENDED_EVENT_H_

#include <cstdint>
#include <cstring>
#include <string_view>

#include "format/event_words.h"
#include "preload/thread_state.h"

namespace memtrace {

// Head and following words, then the text, NUL padded.
template <size_t kWords>
void PutExtended(ThreadState& state, format::ExtendedType type, const uint64_t (&words)[kWords],
                 std::string_view text = {}) {
  uint64_t* out = state.ring.next();
  const size_t text_words = (text.size() + 7) / 8;
  out[0] = format::ExtendedHead(type, static_cast<uint32_t>(kWords + text_words));
  memcpy(out + 1, words, sizeof(words));
  if (text_words > 0) {
    out[kWords + text_words] = 0;  // the padding of the last word
    memcpy(out + 1 + kWords, text.data(), text.size());
  }
  state.ring.Commit(1 + kWords + text_words);
}

inline uint64_t Pair(uint64_t low, uint64_t high) { return (low & 0xffffffff) | high << 32; }

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_EXTENDED_EVENT_H_
