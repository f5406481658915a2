// ArenaParts: where malloc's main arena has memory outside of [heap]. When the program break cannot
// grow, for something is mapped behind it, the arena asks the kernel for parts of a MiB or, in
// glibc 2.36 from the second on, of what it needs and 128 KiB (malloc/malloc.c, sysmalloc), in
// calls of which nothing is known; and the kernel makes one mapping of them and what lies beside.
// What was freed there is the allocator's.
//
// A part begins with a page, and chunk follows chunk from there to its last page's end: the last is
// the arena's top, or two that are headers only (or three, where no more was left), with which the
// arena closed the part when it went on to the next.
// Where the chain does not go so far nothing is said, for what is taken for a part and is the
// program's would make losses of what it keeps.
//
// Reads the pages that `is_there`, nothing else. The threads stand, perhaps in the midst of malloc.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_ARENA_PARTS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_ARENA_PARTS_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_words.h"
#include "preload/recorder.h"

namespace memtrace {

class ArenaParts {
 public:
  // `top`: the last chunk of the arena, wherever that is.
  explicit ArenaParts(uintptr_t top) : top_(top) {}

  // visit(begin, end) for each part that lies in [begin, end), ascending.
  // is_there(address): the page of it can be loaded.
  template <typename IsThere, typename Visit>
  void ForEach(uintptr_t begin, uintptr_t end, IsThere is_there, Visit visit) const {
    for (uintptr_t at = Up(begin, kPage); at < end && end - at >= kPage;) {
      if (!is_there(at)) {
        at += kPage;
        continue;
      }
      const Walk walk = From(at, end, is_there);
      if (walk.is_part) visit(at, walk.end);
      // Not once more through the same chunks, of which many may begin with a page.
      at = walk.is_part || walk.chunks > kMany ? Up(walk.end, kPage) : at + kPage;
    }
  }

 private:
  static constexpr size_t kMany = 64;
  static constexpr uintptr_t kAlignment = 16, kSmallest = 32, kHeader = 16;
  static constexpr uint64_t kPreviousInUse = 1;

  struct Walk {
    bool is_part = false;
    uintptr_t end = 0;  // how far the chain goes
    size_t chunks = 0;
  };

  // Of the headers that close a part; 0: it is not closed there.
  static uint64_t FenceBytes(uintptr_t chunk) {
    uint64_t bytes = kHeader;
    while ((chunk + bytes) % kPage != 0 && bytes < 3 * kHeader) {
      if (Load(chunk + bytes + kWord) != (kHeader | kPreviousInUse)) return 0;
      bytes += kHeader;
    }
    return bytes;
  }

  // Where a chain from `begin` on leads to.
  template <typename IsThere>
  Walk From(uintptr_t begin, uintptr_t limit, IsThere is_there) const {
    Walk walk = {.end = begin + kPage};
    // There is none before the first, which so has nothing in its first word.
    if (Load(begin) != 0 || (Load(begin + kWord) & kPreviousInUse) == 0) return walk;
    for (uintptr_t chunk = begin; limit - chunk >= kSmallest && is_there(chunk); ++walk.chunks) {
      const uint64_t word = Load(chunk + kWord);
      const uint64_t size = word & ~GlibcChunk::kFlags;
      if ((word & (GlibcChunk::kMapped | GlibcChunk::kOtherArena)) != 0) break;
      const bool is_fence = size == kHeader;
      const uint64_t step = is_fence ? FenceBytes(chunk) : size;
      if (step < kSmallest || step % kAlignment != 0 || step > limit - chunk) break;
      const bool is_last = is_fence || chunk == top_;
      chunk += step;
      if (chunk > walk.end) walk.end = chunk;
      if (!is_last) continue;
      walk.is_part = chunk % kPage == 0;
      break;
    }
    return walk;
  }

  const uintptr_t top_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_ARENA_PARTS_H_
